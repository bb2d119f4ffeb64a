package orchestrator

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/definition"
)

// A child run whose definition is part of its task gets the fleet's defaults, and the owner and batch of its parent.
func TestPreparedChildRunHasDefaults(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	children := NewChildren(nil, nil, c.Store, definition.RunDefaults{Timeout: time.Hour, FailurePolicy: "halt", PickupTimeout: time.Minute})
	task := func(more map[string]any) map[string]any {
		t := map[string]any{"type": "shell", "spec": map[string]any{"command": "x"}}
		for key, value := range more {
			t[key] = value
		}
		return t
	}
	spec, err := structpb.NewStruct(map[string]any{"definition": map[string]any{"name": "inner", "tasks": map[string]any{
		"plain": task(nil), "short": task(map[string]any{"timeout": "5s"}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := children.Prepare(t.Context(), &historyv1.PrepareRequest{Children: []*historyv1.ChildRequest{
		{Run: &historyv1.ChildRunRequest{RunId: "r-1", Task: "child", Spec: spec, By: "ann", Batch: "night-7"}},
	}})
	if err != nil || res.GetChildren()[0].GetError() != "" {
		t.Fatal(res, err)
	}
	in := res.GetChildren()[0].GetInput()
	if def := in.GetDefinition(); def.GetTasks()["plain"].GetTimeout() != "1h0m0s" || def.GetTasks()["short"].GetTimeout() != "5s" || def.GetFailurePolicy() != "halt" {
		t.Errorf("its definition is %v", def)
	}
	if in.GetOptions().GetPickupTimeout().AsDuration() != time.Minute || in.GetBy() != "ann" || in.GetBatch() != "night-7" {
		t.Errorf("it starts with %v", in)
	}
}
