package workers

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/dataconverter"
	"switchyard/workflows/limits"
)

// guarded is a data converter that rejects oversized payloads, so that the code that created one fails instead of the
// run. Its error texts are valid UTF-8.
type guarded struct{ dataconverter.Converter }

var _ workflow.ContextAware = guarded{}

// NewDataConverter returns the converter that every Temporal client of Switchyard uses: that of workflows/dataconverter, with a limit
// on the size of messages.
func NewDataConverter() converter.DataConverter {
	return guarded{dataconverter.New()}
}

// WithWorkflowContext returns the converter for workflow code.
func (g guarded) WithWorkflowContext(converter.WorkflowContext) converter.DataConverter {
	return guarded{g.InWorkflow()}
}

// WithContext returns the converter for activities.
func (g guarded) WithContext(context.Context) converter.DataConverter { return g }

func (g guarded) ToPayload(value any) (*commonpb.Payload, error) {
	p, err := g.Converter.ToPayload(value)
	if err == nil {
		err = check(p, value)
	}
	return p, err
}

func (g guarded) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	ps, err := g.Converter.ToPayloads(values...)
	for i, p := range ps.GetPayloads() {
		if err == nil {
			err = check(p, values[i])
		}
	}
	return ps, err
}

func (g guarded) FromPayload(p *commonpb.Payload, value any) error {
	return makeValid(g.Converter.FromPayload(p, value))
}

func (g guarded) FromPayloads(ps *commonpb.Payloads, values ...any) error {
	return makeValid(g.Converter.FromPayloads(ps, values...))
}

func check(p *commonpb.Payload, value any) error {
	if size := len(p.GetData()); size > limits.MaxPayloadBytes {
		return fmt.Errorf("a %T of %d bytes is too large; at most %d can be sent", value, size, limits.MaxPayloadBytes)
	}
	return nil
}
