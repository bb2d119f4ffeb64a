package definition

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
)

const (
	// MaxInstances is the largest number of instances of a task.
	MaxInstances = condition.MaxInstances
	// MaxBatch is the largest number of instances in a batch.
	MaxBatch = 1000
	// autoBatch is the word for batches of about a second of work.
	autoBatch = "auto"
)

// FanOut describes how a task makes its instances. The number or the list is either literal or given by Expression.
type FanOut struct {
	// Foreach is set if each instance is for an item of a list. Otherwise the task has a number of instances.
	Foreach bool
	// Expression is a CEL expression, or empty if the definition has the number or the list itself.
	Expression string
	// Count is the number of instances if there is no expression.
	Count int
	// Items holds the items of a literal `foreach`, one for each instance.
	Items []*structpb.Value
}

// Fan returns how a checked task fans out. ok is false if it does not.
func Fan(task *v1.TaskDefinition) (fan FanOut, ok bool) {
	switch v := task.GetParallel().GetKind().(type) {
	case *structpb.Value_NumberValue:
		return FanOut{Count: int(v.NumberValue)}, true
	case *structpb.Value_StringValue:
		return FanOut{Expression: v.StringValue}, true
	}
	switch v := task.GetForeach().GetKind().(type) {
	case *structpb.Value_ListValue:
		return FanOut{Foreach: true, Count: len(v.ListValue.GetValues()), Items: v.ListValue.GetValues()}, true
	case *structpb.Value_StringValue:
		return FanOut{Foreach: true, Expression: v.StringValue}, true
	}
	return FanOut{}, false
}

// BatchOf returns how many instances of a checked task run in one batch, at least 1. If auto is set, size is 1 and a batch
// takes about a second of work.
func BatchOf(task *v1.TaskDefinition) (size int, auto bool) {
	if v1.IsRemote(task.GetType()) {
		return 1, false // each runs separately in its cluster
	}
	if task.GetBatch().GetStringValue() == autoBatch {
		return 1, true
	}
	return max(1, int(task.GetBatch().GetNumberValue())), false
}

// fanOutRules checks how a task fans out.
type fanOutRules struct{ *decoder }

// check checks how a task fans out, and reports fields about instances in a task without any.
func (r fanOutRules) check(task *v1.TaskDefinition, at *source.Path) {
	parallel, foreach, batch := at.Field("parallel"), at.Field("foreach"), at.Field("batch")
	if task.GetParallel() != nil && task.GetForeach() != nil {
		r.Add(r.locateKey(foreach), foreach, "parallel and foreach are mutually exclusive", "foreach starts one instance per item")
	}
	if task.GetParallel() != nil {
		r.count(task.GetParallel(), parallel)
	}
	if task.GetForeach() != nil {
		r.items(task.GetForeach(), foreach)
	}
	if task.GetBatch() != nil {
		r.batch(task.GetBatch(), batch)
	}
	if task.GetParallel() != nil || task.GetForeach() != nil || r.IsSettled(parallel) || r.IsSettled(foreach) {
		return
	}
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"concurrency", task.GetConcurrency() != 0}, {"maxFailures", task.GetMaxFailures() != 0}, {"batch", task.GetBatch() != nil},
	} {
		if p := at.Field(field.name); field.given {
			r.Add(r.locateKey(p), p, field.name+" is about instances, but the task has none", "add parallel or foreach")
		}
	}
}

// count checks `parallel`: a number of instances, or an expression for one.
func (r fanOutRules) count(v *structpb.Value, p *source.Path) {
	const want = "; it must be a whole number, or an expression such as discover.count"
	n := source.ValueNode(v)
	switch {
	case n.Kind == source.Str:
		r.emptyText(n.Text, p)
	case n.Kind != source.Number || n.Value != math.Trunc(n.Value):
		r.Fail(r.locate(p), p, p.Local()+" is "+n.String()+want, "")
	case n.Value < 0 || n.Value > MaxInstances:
		r.Fail(r.locate(p), p, fmt.Sprintf("%s is %s; it must be 0 to %d", p.Local(), n.Text, MaxInstances), "")
	}
}

// items checks `foreach`: a list, or an expression for one.
func (r fanOutRules) items(v *structpb.Value, p *source.Path) {
	switch n := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		r.emptyText(n.StringValue, p)
	case *structpb.Value_ListValue:
		if size := len(n.ListValue.GetValues()); size > MaxInstances {
			r.Fail(r.locate(p), p, fmt.Sprintf("%s has %d items; it may have %d", p.Local(), size, MaxInstances), "")
		}
	default:
		hint := ""
		if _, is := n.(*structpb.Value_NumberValue); is {
			hint = "for a number of instances, use parallel"
		}
		r.Fail(r.locate(p), p, p.Local()+" is "+source.ValueNode(v).String()+"; it must be a list, or an expression such as discover.files", hint)
	}
}

func (r fanOutRules) batch(v *structpb.Value, p *source.Path) {
	n := source.ValueNode(v)
	switch {
	case n.Kind == source.Str && n.Text == autoBatch:
	case n.Kind == source.Number && n.Value == math.Trunc(n.Value) && n.Value >= 0 && n.Value <= MaxBatch:
	default:
		hint := ""
		if n.Kind == source.Str {
			hint = nearest.DidYouMean(n.Text, []string{autoBatch})
		}
		r.Fail(r.locate(p), p, fmt.Sprintf("%s is %s; it must be a whole number from 0 to %d, or auto", p.Local(), n, MaxBatch), hint)
	}
}
