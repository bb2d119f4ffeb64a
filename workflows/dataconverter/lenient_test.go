package dataconverter_test

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/dataconverter"
)

// TestMessageOfALaterVersionIsRead checks that a field that this version does not know is ignored, while a known field with a
// wrong value is an error.
func TestMessageOfALaterVersionIsRead(t *testing.T) {
	t.Parallel()
	c := dataconverter.Lenient()
	written, err := c.ToPayload(&historyv1.NodeInput{Name: "a"})
	if err != nil || string(written.GetMetadata()[converter.MetadataEncoding]) != converter.MetadataEncodingProtoJSON {
		t.Fatalf("written as %v, %v", written, err)
	}
	read := func(data string) (*historyv1.NodeInput, error) {
		in := &historyv1.NodeInput{}
		return in, c.FromPayload(&commonpb.Payload{Metadata: written.GetMetadata(), Data: []byte(data)}, in)
	}
	if in, err := read(`{"name":"a","later":{"field":1}}`); err != nil || in.GetName() != "a" {
		t.Errorf("read %v, %v", in, err)
	}
	if in, err := read(`{"name":1}`); err == nil {
		t.Errorf("a number is the name %v", in)
	}
}
