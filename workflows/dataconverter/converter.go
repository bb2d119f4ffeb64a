package dataconverter

import (
	"fmt"
	"strconv"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// levelMetadata is the key of a payload's data level in its metadata. A payload without it has the level 1.
const levelMetadata = "switchyard-data-level"

// strict is Temporal's default converter, which writes messages as readable JSON. lenient also reads messages with unknown fields.
var (
	strict  = converter.GetDefaultDataConverter()
	lenient = converter.NewCompositeDataConverter(
		converter.NewNilPayloadConverter(),
		converter.NewByteSlicePayloadConverter(),
		converter.NewProtoJSONPayloadConverterWithOptions(converter.ProtoJSONPayloadConverterOptions{AllowUnknownFields: true}),
		converter.NewProtoPayloadConverter(),
		converter.NewJSONPayloadConverter(),
	)
)

// Converter writes messages as readable JSON, with the data level of this program. It is safe for concurrent use.
type Converter struct {
	converter.DataConverter
	readable, written int
	inWorkflow        bool
}

// New returns a converter.
func New() Converter {
	return Converter{DataConverter: strict, readable: historyv1.ReadableDataLevel(), written: historyv1.WrittenDataLevel()}
}

// InWorkflow returns a converter that panics if a newer program has written a payload, unless the payload is the argument of a query.
// A panic fails the workflow task, while an error would end the workflow.
func (c Converter) InWorkflow() Converter {
	c.inWorkflow = true
	return c
}

// ToPayload encodes a value.
func (c Converter) ToPayload(value any) (*commonpb.Payload, error) {
	p, err := c.DataConverter.ToPayload(value)
	if err == nil {
		c.mark(p)
	}
	return p, err
}

// ToPayloads encodes several values.
func (c Converter) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	ps, err := c.DataConverter.ToPayloads(values...)
	if err == nil {
		for _, p := range ps.GetPayloads() {
			c.mark(p)
		}
	}
	return ps, err
}

// FromPayload decodes a value. The error is a *historyv1.NewerDataError if this program would misread the payload.
func (c Converter) FromPayload(p *commonpb.Payload, value any) error {
	newer, err := c.decode(p, value)
	if newer == nil {
		return err
	}
	if c.inWorkflow && !isOfQuery(value) {
		panic(newer)
	}
	return newer
}

// decode decodes a value, or returns why a newer program must do so.
func (c Converter) decode(p *commonpb.Payload, value any) (newer *historyv1.NewerDataError, err error) {
	if level, _ := strconv.Atoi(string(p.GetMetadata()[levelMetadata])); level > c.readable {
		return &historyv1.NewerDataError{What: describe(value), Level: level}, nil
	}
	if err = strict.FromPayload(p, value); err == nil {
		return nil, nil
	}
	switch {
	case lenient.FromPayload(p, value) != nil:
		return nil, err
	case isOfRun(value):
		return &historyv1.NewerDataError{What: describe(value)}, nil
	}
	return nil, nil
}

// FromPayloads decodes several values.
func (c Converter) FromPayloads(ps *commonpb.Payloads, values ...any) error {
	for i, p := range ps.GetPayloads() {
		if i >= len(values) {
			break
		}
		if err := c.FromPayload(p, values[i]); err != nil {
			return fmt.Errorf("payload item %d: %w", i, err)
		}
	}
	return nil
}

func (c Converter) mark(p *commonpb.Payload) {
	if c.written > 1 {
		p.Metadata[levelMetadata] = []byte(strconv.Itoa(c.written))
	}
}

// isOfRun reports whether a value is the input or the state of a run.
func isOfRun(value any) bool {
	switch value.(type) {
	case *historyv1.RunInput, **historyv1.RunInput, *historyv1.RunState, **historyv1.RunState, *historyv1.PreparedChild, **historyv1.PreparedChild:
		return true
	}
	return false
}

// isOfQuery reports whether a value is the argument of a query. Temporal does not recover from a panic there.
func isOfQuery(value any) bool {
	switch value.(type) {
	case **historyv1.StatusRequest, **historyv1.EventsRequest, **historyv1.InstancesRequest:
		return true
	}
	return false
}

// describe names a value in an error.
func describe(value any) string {
	switch value.(type) {
	case *historyv1.RunInput, **historyv1.RunInput:
		return "the input of the run"
	case *historyv1.RunState, **historyv1.RunState:
		return "the state of the run"
	}
	return strings.TrimLeft(fmt.Sprintf("%T", value), "*") + " in the history"
}
