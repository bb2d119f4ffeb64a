package definition

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// newSpec returns an empty spec for a task type, or nil for an unknown one.
func newSpec(taskType string) proto.Message {
	if t, known := v1.FindTaskType(taskType); known {
		return t.NewSpec()
	}
	return nil
}

// spec decodes a task's spec according to its type, and also returns its canonical form. n is nil or empty if there is none.
// The message is nil if the type is unknown or the spec is not a mapping.
func (r *messageReader) spec(taskType string, n *source.Node, p *source.Path) (proto.Message, *structpb.Struct) {
	if r.IsSettled(p) {
		return nil, nil
	}
	given := n != nil && n.Kind != source.Null
	if given {
		for at, scalar := range n.Scalars(p) {
			if scalar.Kind == source.Str && strings.ContainsRune(scalar.Text, 0) {
				r.nul(scalar.At, at)
			}
		}
	}
	m := newSpec(taskType)
	switch {
	case m == nil && given:
		free, _ := r.freeStruct(n, p)
		return nil, free
	case m == nil:
		return nil, nil
	case given:
		r.message(n, m.ProtoReflect(), p)
		if approval, ok := m.(*v1.ApprovalSpec); ok {
			inputRules{r.decoder}.restoreTexts(approval.GetInputs(), p.Field("inputs"))
		}
	}
	canonical := &structpb.Struct{}
	if data, err := protojson.Marshal(m); err == nil {
		// protojson writes an object here; the rules report any other error.
		_ = protojson.Unmarshal(data, canonical)
	}
	if len(canonical.Fields) == 0 {
		canonical.Fields = nil
	}
	return m, canonical
}

// command decodes the command of a task: a text for a shell, or a list of texts.
func (r *messageReader) command(n *source.Node, p *source.Path) (*structpb.Value, bool) {
	return r.program(n, p, "it must be a string for a shell, or a list of strings")
}

// entrypoint decodes the entry point of a container: a program, or a list of a program and its first arguments.
func (r *messageReader) entrypoint(n *source.Node, p *source.Path) (*structpb.Value, bool) {
	return r.program(n, p, "it must be a program, or a list of it and its first arguments")
}

// program decodes a text, or a list of texts whose first item is a program.
func (r *messageReader) program(n *source.Node, p *source.Path, want string) (*structpb.Value, bool) {
	if text, ok := n.ScalarText(); ok {
		if strings.TrimSpace(text) == "" {
			r.Fail(n.At, p, p.Local()+" is empty", "")
			return nil, false
		}
		return structpb.NewStringValue(text), true
	}
	if n.Kind != source.Sequence {
		r.Fail(n.At, p, p.Local()+" is "+n.String()+"; "+want, "")
		return nil, false
	}
	list := &structpb.ListValue{}
	for i, item := range n.Items {
		text, ok := item.ScalarText()
		switch {
		case !ok:
			r.Fail(item.At, p.Item(i), fmt.Sprintf("%s[%d] is %s; it must be a string", p.Local(), i, item), "")
		case i == 0 && text == "":
			r.Fail(item.At, p.Item(i), p.Local()+" begins with an empty string; the program to run is missing", "")
		}
		list.Values = append(list.Values, structpb.NewStringValue(text))
	}
	if len(list.Values) == 0 {
		r.Fail(n.At, p, p.Local()+" is empty", "")
		return nil, false
	}
	return structpb.NewListValue(list), true
}
