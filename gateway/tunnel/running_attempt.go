package tunnel

import (
	"context"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// RunningAttempt is an attempt that a node is running.
type RunningAttempt struct {
	Run, Chain string
	// Task is the name of the task or instance; Type is the type of the task.
	Task, Type string
	Claim      int32
	Node       string
}

// Find returns the attempt of a run that a task or instance names, or the only attempt whose task type fits if task is
// empty. It finds the attempts that the caller of ctx may enter; runs of others count as not found. purpose ends the texts
// of errors. Errors have Connect codes or are errors of Temporal.
func (h *Hub) Find(ctx context.Context, run, task, purpose string, isFit func(taskType string) bool) (RunningAttempt, error) {
	id, err := h.config.Index.Resolve(ctx, run)
	if err != nil {
		return RunningAttempt{}, err
	}
	desc, err := h.config.Reader.Describe(ctx, id)
	if err != nil {
		return RunningAttempt{}, err
	}
	in, err := h.config.Reader.DefinedInput(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return RunningAttempt{}, err
	}
	typeOf := func(a attempt) string { return typeIn(in.GetDefinition(), a.name) }
	found, err := h.find(ctx, desc, task, purpose, func(a attempt) bool { return isFit(typeOf(a)) })
	if err != nil {
		return RunningAttempt{}, err
	}
	return RunningAttempt{Run: id, Chain: in.GetChain(), Task: found.name, Type: typeOf(found), Claim: found.claim, Node: found.node}, nil
}

// typeIn returns the type of a task, or of an instance's task.
func typeIn(def *v1.Definition, name string) string {
	if task, _, isInstance := names.ParseInstanceName(name); isInstance {
		name = task
	}
	return v1.TaskNamed(def, name).GetType()
}
