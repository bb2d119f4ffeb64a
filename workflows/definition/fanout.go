package definition

import (
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

const (
	// MaxInstances is the largest number of instances of a task.
	MaxInstances = condition.MaxInstances
	// MaxBatch is the largest number of instances in a batch.
	MaxBatch = 1000
	// autoBatch is the word for batches of about a second of work.
	autoBatch = "auto"
)

// FanOut is how a task makes its instances. Either the number or the list is
// written out, or Expression gives it.
type FanOut struct {
	// Foreach says that each instance is for an item of a list; else the task has
	// a number of instances.
	Foreach bool
	// Expression in CEL, empty when the definition has the number or the list itself.
	Expression string
	// Count is the number of instances where there is no expression.
	Count int
	// Items are those of a `foreach` that is written out, one an instance.
	Items []*structpb.Value
}

// Fan returns how a checked task fans out; not ok: it does not.
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

// BatchOf returns how many instances of a checked task run in one go, at least
// 1. auto: as many as make about a second of work; size is 1 then.
func BatchOf(task *v1.TaskDefinition) (size int, auto bool) {
	if task.GetBatch().GetStringValue() == autoBatch {
		return 1, true
	}
	return max(1, int(task.GetBatch().GetNumberValue())), false
}

// fanOut checks how a task fans out, and that what is about instances stands
// only where there are some.
func (d *decoder) fanOut(task *v1.TaskDefinition, at *path) {
	parallel, foreach, batch := at.field("parallel"), at.field("foreach"), at.field("batch")
	if task.GetParallel() != nil && task.GetForeach() != nil {
		d.add(d.locateKey(foreach), foreach, "parallel and foreach exclude each other", "foreach makes one instance for each item")
	}
	if task.GetParallel() != nil && !d.settled(parallel) {
		d.count(task.GetParallel(), parallel)
	}
	if task.GetForeach() != nil && !d.settled(foreach) {
		d.items(task.GetForeach(), foreach)
	}
	if task.GetBatch() != nil && !d.settled(batch) {
		d.batch(task.GetBatch(), batch)
	}
	if task.GetParallel() != nil || task.GetForeach() != nil || d.settled(parallel) || d.settled(foreach) {
		return
	}
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"concurrency", task.GetConcurrency() != 0}, {"maxFailures", task.GetMaxFailures() != 0}, {"batch", task.GetBatch() != nil},
	} {
		if p := at.field(field.name); field.given && !d.settled(p) {
			d.add(d.locateKey(p), p, field.name+" is about instances, and the task has none", "give it parallel or foreach")
		}
	}
}

// count checks `parallel`: a number of instances, or what gives one.
func (d *decoder) count(v *structpb.Value, p *path) {
	const want = "; it must be a whole number, or an expression such as discover.count"
	n := valueNode(v)
	switch {
	case n.kind == str:
		d.emptyText(n.text, p)
	case n.kind != number || n.value != math.Trunc(n.value):
		d.fail(d.locate(p), p, p.local()+" is "+n.String()+want, "")
	case n.value < 0 || n.value > MaxInstances:
		d.fail(d.locate(p), p, fmt.Sprintf("%s is %s; it must be 0 to %d", p.local(), n.text, MaxInstances), "")
	}
}

// items checks `foreach`: a list, or what gives one.
func (d *decoder) items(v *structpb.Value, p *path) {
	switch n := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		d.emptyText(n.StringValue, p)
	case *structpb.Value_ListValue:
		if size := len(n.ListValue.GetValues()); size > MaxInstances {
			d.fail(d.locate(p), p, fmt.Sprintf("%s has %d items; it may have %d", p.local(), size, MaxInstances), "")
		}
	default:
		hint := ""
		if _, is := n.(*structpb.Value_NumberValue); is {
			hint = "parallel makes a number of instances"
		}
		d.fail(d.locate(p), p, p.local()+" is "+valueNode(v).String()+"; it must be a list, or an expression such as discover.files", hint)
	}
}

func (d *decoder) batch(v *structpb.Value, p *path) {
	n := valueNode(v)
	switch {
	case n.kind == str && n.text == autoBatch:
	case n.kind == number && n.value == math.Trunc(n.value) && n.value >= 0 && n.value <= MaxBatch:
	default:
		hint := ""
		if n.kind == str {
			hint = didYouMean(n.text, []string{autoBatch})
		}
		d.fail(d.locate(p), p, fmt.Sprintf("%s is %s; it must be a whole number from 0 to %d, or auto", p.local(), n, MaxBatch), hint)
	}
}

// emptyText refuses an expression that is none.
func (d *decoder) emptyText(text string, p *path) {
	if strings.TrimSpace(text) == "" {
		d.fail(d.locate(p), p, p.local()+" is empty", "")
	}
}
