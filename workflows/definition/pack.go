package definition

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// packAbove is the JSON size above which the definition of a run is packed. Below it the definition stays readable in
	// Temporal's Web UI.
	packAbove = 256 << 10
	// MaxInlineInput is the largest JSON size of a child workflow's input that travels inline; a larger one travels by
	// reference.
	MaxInlineInput = 4 << 10
	// MaxAnswerBytes is the largest JSON size of a local activity's answer.
	MaxAnswerBytes = 256 << 10
	// maxUnpacked is the largest size of an unpacked message.
	maxUnpacked = 64 << 20
)

// Pack compresses the definition of a run, with its input and references, in place if it is large. A Temporal payload holds 2
// MB, and `defaults` and escapes can make a document of 1 MiB larger than that. Pack is idempotent.
func Pack(in *historyv1.RunInput) error {
	if len(in.GetPacked()) > 0 {
		return nil
	}
	part := &historyv1.RunInput{Definition: in.GetDefinition(), Input: in.GetInput(), References: in.GetReferences(), Workflows: in.GetWorkflows()}
	// A message is never larger than its JSON.
	if text, err := protojson.Marshal(part); err != nil || len(text) <= packAbove {
		return err
	}
	packed, err := PackMessage(part)
	if err != nil {
		return err
	}
	in.Definition, in.Input, in.References, in.Workflows, in.Packed = nil, nil, nil, nil, packed
	return nil
}

// Unpack returns the input of a run with its definition, input and references unpacked. It does not modify in, and returns it
// unchanged if nothing is packed. It is deterministic.
func Unpack(in *historyv1.RunInput) (*historyv1.RunInput, error) {
	if len(in.GetPacked()) == 0 {
		return in, nil
	}
	var part historyv1.RunInput
	if err := UnpackMessage(in.GetPacked(), &part); err != nil {
		return nil, fmt.Errorf("unpack the definition: %w", err)
	}
	whole := proto.CloneOf(in)
	whole.Definition, whole.Input, whole.References, whole.Packed = part.Definition, part.Input, part.References, nil
	whole.Workflows = part.Workflows
	return whole, nil
}

// PackMessage compresses a message, which takes several times its size as JSON, the form in which Temporal carries messages.
func PackMessage(m proto.Message) ([]byte, error) {
	data, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// UnpackMessage decompresses the result of PackMessage into m. It is deterministic.
func UnpackMessage(packed []byte, m proto.Message) error {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err != nil {
		return err
	}
	if len(data) > maxUnpacked {
		return fmt.Errorf("it takes more than %d bytes", maxUnpacked)
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return err
	}
	return historyv1.CheckKnown("a packed part of the run", m)
}
