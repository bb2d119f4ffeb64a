package workers

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"switchyard/workflows/dataconverter"
	"switchyard/workflows/limits"
)

// guarded is a data converter that rejects oversized payloads, so that the code that created one fails instead of the
// run. Its error texts are valid UTF-8.
type guarded struct{ converter.DataConverter }

// NewDataConverter returns the converter that every Temporal client of Switchyard uses: that of workflows/dataconverter, with a limit
// on the size of messages.
func NewDataConverter() converter.DataConverter {
	return guarded{dataconverter.Lenient()}
}

func (g guarded) ToPayload(value any) (*commonpb.Payload, error) {
	p, err := g.DataConverter.ToPayload(value)
	if err == nil {
		err = check(p, value)
	}
	return p, err
}

func (g guarded) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	ps, err := g.DataConverter.ToPayloads(values...)
	for i, p := range ps.GetPayloads() {
		if err == nil {
			err = check(p, values[i])
		}
	}
	return ps, err
}

func (g guarded) FromPayload(p *commonpb.Payload, value any) error {
	return makeValid(g.DataConverter.FromPayload(p, value))
}

func (g guarded) FromPayloads(ps *commonpb.Payloads, values ...any) error {
	return makeValid(g.DataConverter.FromPayloads(ps, values...))
}

func check(p *commonpb.Payload, value any) error {
	if size := len(p.GetData()); size > limits.MaxPayloadBytes {
		return fmt.Errorf("a %T of %d bytes is too large; at most %d can be sent", value, size, limits.MaxPayloadBytes)
	}
	return nil
}
