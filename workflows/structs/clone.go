package structs

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Clone returns a copy of a struct, to which fields can be added. The copy of nil is empty.
func Clone(s *structpb.Struct) *structpb.Struct {
	if s == nil {
		return &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	c := proto.CloneOf(s)
	if c.Fields == nil {
		c.Fields = map[string]*structpb.Value{}
	}
	return c
}
