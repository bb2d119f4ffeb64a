package gateway

import (
	"context"
	"strings"
	"unicode"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// maxItem is how much of an item lists show, in characters.
const maxItem = 80

// itemsOf returns the list of the `foreach` that the instances of a task are for, or nil if there is none or it cannot
// be read: instances are shown without their items then.
func (g *Gateway) itemsOf(ctx context.Context, v *view, task string) []*structpb.Value {
	items, err := g.reader.items(ctx, v, task)
	if err == nil && items.GetKey() != "" {
		var stored v1.ItemList
		err = g.store.GetMessage(ctx, items.GetKey(), &stored)
		items = &v1.Items{List: &structpb.ListValue{Values: stored.GetItems()}}
	}
	if err != nil {
		g.log.Debug("the items of a task cannot be read", "run", v.run.GetId(), "task", task, "error", err)
	}
	return items.GetList().GetValues()
}

// items returns the list of a `foreach`, or where it is stored: an open run has it, of one that has ended the last
// status does, or the definition.
func (r *reader) items(ctx context.Context, v *view, task string) (*v1.Items, error) {
	if !v1.IsRunTerminal(v.run.GetState()) {
		answer, err := r.queryInstances(ctx, v.run.GetId(), &v1.InstancesRequest{Task: task, Limit: 1})
		return answer.GetItems(), err
	}
	var status v1.StatusResponse
	err := r.store.GetMessage(ctx, store.StatusKey(v.home(), v.run.GetGeneration()), &status)
	if items := status.GetItems()[task]; err != nil || items != nil {
		return items, err
	}
	desc, err := r.describe(ctx, v.run.GetId())
	if err != nil {
		return nil, err
	}
	in, err := r.input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	return &v1.Items{List: in.GetDefinition().GetTasks()[task].GetForeach().GetListValue()}, err
}

// shortItem is an item in one line for people.
func shortItem(item *structpb.Value) string {
	text := []rune(strings.Join(strings.FieldsFunc(condition.Text(item), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == unicode.ReplacementChar
	}), " "))
	if len(text) > maxItem {
		return string(text[:maxItem-3]) + "..."
	}
	return string(text)
}
