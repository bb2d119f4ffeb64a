package tunnel

import (
	"context"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// RunningAttempt is an attempt that a node runs now.
type RunningAttempt struct {
	Run, Chain string
	// Task is the task or instance, Type that of the task.
	Task, Type string
	Claim      int32
	Node       string
}

// Find returns the attempt that the caller of ctx means by a task or instance of a run, or by "" the only one whose task is of a type
// that fits. A caller finds the attempts that it may enter, and a run of another one does not exist for it. purpose says in errors what
// is made of attempts. Errors have the codes of Connect, or those of Temporal.
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

// typeIn returns the type of a task, or of the task of an instance.
func typeIn(def *v1.Definition, name string) string {
	if task, _, isInstance := names.ParseInstanceName(name); isInstance {
		name = task
	}
	return def.GetTasks()[name].GetType()
}
