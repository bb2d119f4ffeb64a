package switchyardv1

import (
	"slices"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// allowedWords returns the words that a message field accepts, except "".
func allowedWords(t *testing.T, m proto.Message, field string) []string {
	t.Helper()
	d := m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(field))
	if d == nil {
		t.Fatalf("%T has no field %s", m, field)
	}
	rules, _ := proto.GetExtension(d.Options(), validate.E_Field).(*validate.FieldRules)
	return slices.DeleteFunc(slices.Concat(rules.GetString().GetIn(), rules.GetRepeated().GetItems().GetString().GetIn()), func(word string) bool { return word == "" })
}

func TestListsOfWordsAreThoseOfTheFields(t *testing.T) {
	for _, c := range []struct {
		message proto.Message
		field   string
		words   []string
	}{
		{&Run{}, "state", RunStates()},
		{&ListRunsRequest{}, "state", RunStates()},
		{&ListRunsRequest{}, "trigger", Triggers()},
		{&RunConcurrency{}, "strategy", Strategies()},
		{&ScheduleDefinition{}, "overlap", Overlaps()},
		{&TriggerScheduleRequest{}, "overlap", Overlaps()},
		{&BackfillScheduleRequest{}, "overlap", Overlaps()},
		{&Task{}, "state", TaskStates()},
		{&Event{}, "event", EventWords()},
		{&ListRunEventsRequest{}, "event", EventWords()},
		{&Node{}, "state", NodeStates()},
		{&ListNodesRequest{}, "state", NodeStates()},
		{&ListTasksRequest{}, "state", TaskStates()},
		{&ListTasksRequest{}, "type", TaskTypes()},
		{&Notification{}, "on", NotifyEvents()},
		{&QueueGroup{}, "reason", WaitReasons()},
		{&TaskDefinition{}, "type", TaskTypes()},
		{&TaskDefaults{}, "type", TaskTypes()},
	} {
		if allowed := allowedWords(t, c.message, c.field); !slices.Equal(allowed, c.words) {
			t.Errorf("%T.%s accepts %v; the list has %v", c.message, c.field, allowed, c.words)
		}
	}
}

func TestTerminalTaskStateIsSuccessFailureOrNeutral(t *testing.T) {
	for _, state := range append(TaskStates(), "", AttemptMoved, "unknown") {
		kinds := 0
		for _, is := range []bool{IsTaskSuccess(state), IsTaskFailure(state), isTaskNeutral(state)} {
			if is {
				kinds++
			}
		}
		terminal := slices.Contains(TaskEndStates(), state)
		if want := map[bool]int{true: 1}[terminal]; kinds != want {
			t.Errorf("state %q is of %d kinds of ends, want %d", state, kinds, want)
		}
		if IsTaskTerminal(state) != terminal {
			t.Errorf("IsTaskTerminal(%q) = %v", state, !terminal)
		}
		if IsRetryableEnd(state) != slices.Contains(RetryableEndStates(), state) || IsRetryableEnd(state) && !IsTaskFailure(state) {
			t.Errorf("IsRetryableEnd(%q) = %v", state, IsRetryableEnd(state))
		}
		if terminal && (IsTaskWaiting(state) || IsTaskDispatched(state)) {
			t.Errorf("state %q is open and terminal", state)
		}
	}
}

func TestOpenRunStates(t *testing.T) {
	var open []string
	for _, state := range RunStates() {
		if !IsRunTerminal(state) {
			open = append(open, state)
		}
	}
	if want := []string{RunPending, RunPendingApproval, RunRunning, RunPaused}; !slices.Equal(open, want) {
		t.Errorf("open states of a run: %v, want %v", open, want)
	}
}

func TestOnlyRunsAndApprovalsNeedNoNode(t *testing.T) {
	var without []string
	for _, kind := range TaskTypes() {
		if !NeedsNode(kind) {
			without = append(without, kind)
		}
	}
	if !slices.Equal(without, []string{TypeRun, TypeApproval}) {
		t.Errorf("these need no node: %v", without)
	}
}

// TestTaskThatIsAwayHasNotEnded checks that a task that is lost only until its node is back has neither ended nor
// failed.
func TestTaskThatIsAwayHasNotEnded(t *testing.T) {
	for _, test := range []struct {
		task          *Task
		ended, failed bool
	}{
		{&Task{State: TaskLost, Notice: "its node is silent"}, false, false}, {&Task{State: TaskLost}, true, true},
		{&Task{State: TaskFailed, Notice: "it was slow"}, true, true}, {&Task{State: TaskCompleted}, true, false},
		{&Task{State: TaskRunning, Notice: "its node is silent"}, false, false}, {nil, false, false},
	} {
		if HasTaskEnded(test.task) != test.ended || HasTaskFailed(test.task) != test.failed {
			t.Errorf("%v: ended %v, failed %v", test.task, HasTaskEnded(test.task), HasTaskFailed(test.task))
		}
	}
}
