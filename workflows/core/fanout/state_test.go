package fanout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/limits"
)

// start is when the runs of the tests start.
var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// object returns an object with one field.
func object(key, value string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(value)}}
}

// newState returns the state of a run whose only task is each. Partitions have 100 instances.
func newState(t *testing.T, task *v1.TaskDefinition) *State {
	t.Helper()
	task.Type, task.Parallel = v1.TypeShell, structpb.NewNumberValue(200)
	in := &historyv1.RunInput{Definition: &v1.Definition{Name: "work", Tasks: map[string]*v1.TaskDefinition{"each": task}}}
	graph, err := dag.NewGraph(in.GetDefinition(), nil)
	if err != nil {
		t.Fatal(err)
	}
	core := dag.New(graph)
	core.Start()
	return New(flight.Config{Input: in, RunID: "run", Chain: "chain", Limits: limits.Run{Instances: 100, PartitionInstances: 100, Children: 3}}, core, flight.NewRecords(nil), &structpb.Struct{})
}

// expandedState returns the state of a run whose only task runs as a large fan-out.
func expandedState(t *testing.T, task *v1.TaskDefinition, count int) (*State, *fanOut) {
	t.Helper()
	s := newState(t, task)
	s.partition(0, count)
	apply(s, s.take())
	if !s.isRunning(s.of(0)) {
		t.Fatal("the task does not run")
	}
	return s, s.of(0)
}

// openState returns the state of a run whose only task has 200 instances, of which one may fail, in two partitions that are open.
func openState(t *testing.T) (*State, *fanOut) {
	t.Helper()
	s, m := expandedState(t, &v1.TaskDefinition{MaxFailures: 1}, 200)
	openAll(s, 9)
	for number := 1; number <= 2; number++ {
		s.Prepared(number, s.idOf(m.partitions[number-1]))
		s.Opened(number, "first")
	}
	for _, p := range m.partitions {
		p.Counts = map[string]int32{v1.TaskRunning: 100}
	}
	return s, m
}

// openAll opens the partitions that may open, and returns the effects.
func openAll(s *State, free int) (all []Effect) {
	for from := 0; ; {
		o, effects := s.Next(0, from, free-len(s.children), false)
		all = append(all, effects...)
		if o == nil {
			return all
		}
		all = append(all, s.Open(o, nil)...)
		from = o.To
	}
}

// apply hands the events among effects to the core.
func apply(s *State, effects []Effect) {
	for _, effect := range effects {
		if e, ok := effect.(Raise); ok {
			s.core.Apply(e.Event)
		}
	}
}

// texts shows effects of a state in one line, without those that only limit children.
func texts(s *State, effects []Effect) string {
	var all []string
	for _, effect := range effects {
		switch e := effect.(type) {
		case LimitChildren:
		case Raise:
			all = append(all, eventText(e.Event))
		case Wake:
			all = append(all, "wake")
		case Settle:
			all = append(all, verdictText(fmt.Sprint("settle ", e.Ask), "", e.Refusal))
		case AskItems:
			all = append(all, "ask items")
		case AskCount:
			all = append(all, "ask count")
		case OpenChild:
			text := fmt.Sprintf("open %d: %d to %d", e.Child, e.Opening.From, e.Opening.To)
			if n := e.Opening.Partition.GetConcurrency(); n > 0 {
				text += fmt.Sprintf(" at most %d", n)
			}
			if again := e.Opening.Rerun; again != nil {
				text += fmt.Sprintf(" again failed=%v skipped=%v %v", again.GetFailed(), again.GetSkipped(), e.Opening.Requeued)
			}
			all = append(all, text)
		case Reattach:
			all = append(all, fmt.Sprintf("reattach %d: %s", e.Child, e.First))
		case CancelChild:
			all = append(all, fmt.Sprint("cancel child ", e.Child))
		case AwaitClose:
			all = append(all, fmt.Sprint("await close ", e.Child))
		case SendOrder:
			all = append(all, strings.TrimSpace(fmt.Sprintf("order cancel=%v halt=%v %s %s", e.Order.GetCancel(), e.Order.GetHalt(), e.Order.GetHaltReason(), e.Order.GetKilled())))
		case SendAnswer:
			text := "answer"
			for _, v := range e.Answer.GetVerdicts() {
				text = verdictText(fmt.Sprintf("%s %d", text, v.GetNumber()), " merged", v.GetRefusal())
			}
			all = append(all, text)
		case SendReport:
			all = append(all, fmt.Sprintf("report %v %s updates=%d", e.Report.GetCounts(), e.Report.GetFailure(), len(e.Report.GetContextUpdates())))
		case ReportLater:
			all = append(all, fmt.Sprint("report in ", e.Delay))
		case Cancel:
			all = append(all, "cancel: "+e.Reason)
		case Pause:
			all = append(all, "pause")
		case Resume:
			all = append(all, "resume")
		case Show:
			text := fmt.Sprintf("show %v", s.records.Of(e.Task).Counts)
			if wait := s.records.Of(e.Task).Wait; wait != "" {
				text = "show " + wait
			}
			all = append(all, text)
		case ShowNode:
			all = append(all, "show node "+e.Node)
		case ShowContext:
			all = append(all, "show context")
		}
	}
	return strings.Join(strings.Fields(strings.Join(all, ", ")), " ")
}

// eventText shows an event of the core in one line.
func eventText(event dag.Event) string {
	switch e := event.(type) {
	case dag.Expanded:
		return strings.TrimSpace(fmt.Sprintf("expanded %d %s", e.Count, e.Err))
	case dag.Ended:
		return strings.TrimSpace(fmt.Sprintf("ended %s %s %s", e.State, e.Reason, e.Error))
	case dag.Requeued:
		return "requeued"
	case dag.Kill:
		return "kill: " + e.Reason
	case dag.HaltGroup:
		return "halt " + e.Reason
	case dag.ResumeGroup:
		return "resume group"
	}
	return fmt.Sprintf("%T", event)
}

func verdictText(text, merged, refusal string) string {
	if refusal != "" {
		return text + " refused"
	}
	return text + merged
}
