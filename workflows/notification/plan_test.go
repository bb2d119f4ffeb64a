package notification

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

func TestEachTargetIsToldOnceByItsFirstEntry(t *testing.T) {
	on := func(to string, words ...string) *v1.Notification { return &v1.Notification{To: to, On: words} }
	with := func(n *v1.Notification, expression, message string) *v1.Notification {
		n.If, n.Message = expression, message
		return n
	}
	run := &historyv1.RunView{Id: "ci-1", Name: "ci", State: v1.RunCompleted, Failed: []string{"a", "b"}}
	for name, c := range map[string]struct {
		entries   []*v1.Notification
		event     string
		recovered bool
		want      string // target, event and text of each message
	}{
		"no entry":              {nil, v1.NotifyFailed, false, ""},
		"another event":         {[]*v1.Notification{on("ops", "failed")}, v1.NotifyCompleted, false, ""},
		"two entries":           {[]*v1.Notification{with(on("ops", "completed"), "", "1"), with(on("ops", "completed"), "", "2"), on("dev", "completed")}, v1.NotifyCompleted, false, "ops completed 1|dev completed "},
		"the second applies":    {[]*v1.Notification{with(on("ops", "completed"), "run.name == 'x'", "1"), with(on("ops", "completed"), "", "2")}, v1.NotifyCompleted, false, "ops completed 2"},
		"recovered":             {[]*v1.Notification{on("ops", "completed", "recovered"), on("dev", "recovered"), on("x", "completed")}, v1.NotifyCompleted, true, "ops recovered |dev recovered |x completed "},
		"not recovered":         {[]*v1.Notification{on("ops", "completed", "recovered"), on("dev", "recovered")}, v1.NotifyCompleted, false, "ops completed "},
		"a template":            {[]*v1.Notification{with(on("ops", "completed"), "size(run.failed) == 2", "${{ event }} of ${{ run.id }}")}, v1.NotifyCompleted, false, "ops completed completed of ci-1"},
		"a broken condition":    {[]*v1.Notification{with(on("ops", "completed"), "run.input.x == 1", "m")}, v1.NotifyCompleted, false, "ops completed m\n(sent because notify.if cannot be evaluated: "},
		"a broken template":     {[]*v1.Notification{with(on("ops", "completed"), "", "${{ run.input.x }}")}, v1.NotifyCompleted, false, "ops completed (notify.message: "},
		"an expensive template": {[]*v1.Notification{with(on("ops", "completed"), "", "${{ 'x'.repeat }}")}, v1.NotifyCompleted, false, "ops completed (notify.message: "},
	} {
		var got []string
		for _, d := range Plan(t.Context(), condition.NewEvaluator(), &historyv1.NotifyInput{Event: c.event, Notify: c.entries}, run, c.recovered) {
			got = append(got, d.Target+" "+d.Event+" "+d.Text)
		}
		if text := strings.Join(got, "|"); !strings.HasPrefix(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

func TestEntriesOfTheFleetFollowThoseOfTheDefinition(t *testing.T) {
	own, fleet := &v1.Notification{To: "own"}, []*v1.Notification{{To: "fleet"}}
	in := &historyv1.RunInput{Definition: &v1.Definition{Notify: []*v1.Notification{own}}}
	if got := OfRun(in, fleet); len(got) != 2 || got[0] != own || got[1] != fleet[0] {
		t.Errorf("%v", got)
	}
	if got := OfRun(nil, fleet); len(got) != 1 { // the definition cannot be read
		t.Errorf("%v", got)
	}
	in.ParentRun = "parent"
	if got := OfRun(in, fleet); len(got) != 1 || got[0] != own {
		t.Errorf("of a child run: %v", got)
	}
}

func TestInputsOfAnApprovalAreListed(t *testing.T) {
	in := &historyv1.NotifyInput{
		Event: v1.NotifyApproval, Task: "ask", Detail: "Deploy?", Notify: []*v1.Notification{{To: "ops", On: []string{v1.NotifyApproval}, Message: "hello\n"}, {To: "dev", On: []string{v1.NotifyApproval}}},
		Inputs: map[string]*v1.InputDefinition{"version": {Required: true}, "count": {Type: "integer", Default: structpb.NewNumberValue(3)}},
	}
	const lines = "Its inputs:\n- count: integer, default 3\n- version: string, required"
	got := Plan(t.Context(), condition.NewEvaluator(), in, &historyv1.RunView{Id: "ci-1"}, false)
	if len(got) != 2 || got[0].Text != "hello\n\n"+lines || got[1].Text != lines {
		t.Errorf("%q", got)
	}
}

func TestPlansAreBounded(t *testing.T) {
	long := strings.Repeat("é\x01", 1<<16)
	input, err := structpb.NewStruct(map[string]any{"x": long[:60000]})
	if err != nil {
		t.Fatal(err)
	}
	run := &historyv1.RunView{Id: "ci-1", State: v1.RunFailed, Error: long, Input: input}
	for _, n := range []int{1, 5, 70} {
		var entries []*v1.Notification
		for i := range n {
			entries = append(entries, &v1.Notification{To: fmt.Sprint("target-", i), On: []string{v1.NotifyFailed}, Message: strings.Repeat("${{ run.input.x }}", 60)})
		}
		plan := &historyv1.NotificationPlan{}
		for _, d := range Plan(t.Context(), condition.NewEvaluator(), &historyv1.NotifyInput{Event: v1.NotifyFailed, Notify: entries}, run, false) {
			if !utf8.ValidString(d.Text) || !strings.HasSuffix(d.Text, "...") || len(d.Text) < 1000 || !utf8.ValidString(d.Title) || !strings.HasSuffix(d.Title, "...") {
				t.Errorf("the text has %d bytes, the title is %q", len(d.Text), d.Title)
			}
			plan.Messages = append(plan.Messages, &historyv1.NotificationMessage{Title: d.Title, Text: d.Text})
		}
		if text, err := protojson.Marshal(plan); err != nil || len(text) > 1700<<10 || len(plan.GetMessages()) != n {
			t.Errorf("%v: %d messages take %d bytes", err, len(plan.GetMessages()), len(text))
		}
	}
}

func TestLargeInputsAreLeftOut(t *testing.T) {
	input := &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewStringValue(strings.Repeat("x", maxInput))}}
	if got := Input(&historyv1.RunInput{Input: input}); got != nil {
		t.Error("a large input is seen")
	}
	input.Fields["x"] = structpb.NewStringValue("y")
	if got := Input(&historyv1.RunInput{Input: input}); got != input {
		t.Error("a small input is not seen")
	}
}
