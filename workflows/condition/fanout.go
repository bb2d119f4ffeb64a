package condition

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// fanOutFields returns the fields that a task that fanned out has besides its exit code and state.
func (m *model) fanOutFields() map[string]field {
	// number returns the field for a number of instances.
	number := func(name string, of func(*historyv1.FanOutView) int32) field {
		return field{types.IntType, func(o *object) ref.Val {
			if !o.has(name) {
				return types.NewErr("no such field: %s; the task did not fan out", name)
			}
			return types.Int(of(o.task.GetFanOut()))
		}}
	}
	return map[string]field{
		"count":     number("count", (*historyv1.FanOutView).GetCount),
		"completed": number("completed", (*historyv1.FanOutView).GetCompleted),
		"failed":    number("failed", (*historyv1.FanOutView).GetFailed),
		"outputs": {types.NewListType(types.DynType), func(o *object) ref.Val {
			if !o.has("outputs") {
				return types.NewErr("no such field: outputs; the task did not fan out")
			}
			if o.outputs == nil {
				o.outputs = m.outputs(o.task.GetFanOut())
			}
			return o.outputs
		}},
	}
}

// outputs returns the list of the instances' outputs.
func (m *model) outputs(view *historyv1.FanOutView) ref.Val {
	if list := view.GetOutputs().GetList(); list != nil {
		return types.NewJSONList(m.Registry, list)
	}
	if view.GetError() != "" {
		return types.NewErr("%s", view.GetError())
	}
	if view.GetOutputs().GetKey() != "" {
		return types.NewErr("the outputs were not read")
	}
	return types.NewJSONList(m.Registry, EmptyOutputs(int(view.GetCount())))
}

// EmptyOutputs returns the output list of count instances without output. All items are the same value and must not be
// modified.
func EmptyOutputs(count int) *structpb.ListValue {
	empty := structpb.NewStructValue(&structpb.Struct{})
	list := &structpb.ListValue{Values: make([]*structpb.Value, count)}
	for i := range list.Values {
		list.Values[i] = empty
	}
	return list
}
