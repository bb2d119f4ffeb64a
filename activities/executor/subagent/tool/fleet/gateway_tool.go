package fleet

import (
	"context"
	"encoding/json"
	"fmt"

	"switchyard/activities/executor/subagent/tool"
)

const (
	keyArgument   = "idempotencyKey"
	batchArgument = "batch"
)

// gatewayTool is a tool of the gateway. If the tool starts a run, the model chooses neither the idempotency key nor the
// batch.
type gatewayTool struct {
	fleet      *Fleet
	inner      tool.Tool
	starts     bool
	definition tool.Definition
}

func newGatewayTool(f *Fleet, inner tool.Tool) *gatewayTool {
	t := &gatewayTool{fleet: f, inner: inner, definition: inner.Definition()}
	var schema map[string]any
	if json.Unmarshal(t.definition.Schema, &schema) != nil {
		return t
	}
	properties, _ := schema["properties"].(map[string]any)
	if _, t.starts = properties[keyArgument]; t.starts {
		delete(properties, keyArgument)
		delete(properties, batchArgument)
		if data, err := json.Marshal(schema); err == nil {
			t.definition.Schema = data
		}
	}
	return t
}

// Definition returns the description for the model.
func (t *gatewayTool) Definition() tool.Definition { return t.definition }

// Call calls the tool, with the idempotency key and the batch if it starts a run.
func (t *gatewayTool) Call(ctx context.Context, call tool.Call) (tool.Outcome, error) {
	if !t.starts {
		return t.inner.Call(ctx, call)
	}
	arguments := map[string]json.RawMessage{}
	if err := parse(call, &arguments); err != nil {
		return failure("%v", err), nil
	}
	arguments[keyArgument], _ = json.Marshal(t.fleet.key(call))
	delete(arguments, batchArgument)
	if t.fleet.o.Batch != "" {
		arguments[batchArgument], _ = json.Marshal(t.fleet.o.Batch)
	}
	data, err := json.Marshal(arguments)
	if err != nil {
		return failure("%v", err), nil
	}
	call.Arguments = data
	return t.inner.Call(ctx, call)
}

// parse decodes the arguments of a call. Its error is meant for the model.
func parse(call tool.Call, into any) error {
	data := call.Arguments
	if len(data) == 0 || string(data) == "null" {
		data = []byte("{}")
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("invalid arguments: %w", err)
	}
	return nil
}

// failure returns the outcome of a failed call.
func failure(format string, args ...any) tool.Outcome {
	return tool.Outcome{Text: fmt.Sprintf(format, args...), IsError: true}
}
