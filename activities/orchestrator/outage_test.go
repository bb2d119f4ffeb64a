package orchestrator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// takeAway makes the store of c unreachable until the returned function is called.
func takeAway(t *testing.T, c *Control) (bringBack func()) {
	t.Helper()
	here := c.Store.Location()
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(here, here+"-away")
	return func() { move(here+"-away", here) }
}

// An unreadable result fails only the questions that read it. A store that is away fails none.
func TestEvaluateUnreadableResultFailsItsOwnQuestion(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	parents := map[string]*historyv1.ParentView{}
	for _, task := range []string{"good", "torn", "refused"} {
		parents[task] = &historyv1.ParentView{State: "completed", Record: storekey.Result("r-1", 0, task, 0)}
		if err := c.Store.PutMessage(t.Context(), parents[task].GetRecord(), &historyv1.ExecuteResponse{Result: &v1.TaskResult{Stdout: "yes"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Store.Put(t.Context(), parents["torn"].GetRecord(), []byte{0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	refused := filepath.Join(c.Store.Location(), parents["refused"].GetRecord())
	if err := errors.Join(os.Remove(refused), os.Mkdir(refused, 0o755)); err != nil {
		t.Fatal(err)
	}
	req := &historyv1.EvaluateRequest{Parents: parents, Workflow: &historyv1.WorkflowView{Name: "w", RunId: "r-1"}}
	for _, task := range []string{"torn", "good", "refused"} {
		req.Conditions = append(req.Conditions, &historyv1.Condition{
			Task: "after-" + task, Expression: "parent." + task + ".stdout == 'yes'", References: []string{task},
		})
	}

	bringBack := takeAway(t, c)
	res, err := c.Evaluate(t.Context(), req)
	if err != nil || len(res.GetAnswers()) != 0 || !strings.Contains(res.GetAway(), "the folder is away") {
		t.Errorf("while the store is away: %v, %v", res, err)
	}
	bringBack()

	var answers []*historyv1.ConditionAnswer
	for len(answers) < 3 { // a slow machine takes several calls
		res, err = c.Evaluate(t.Context(), req)
		if err != nil || len(res.GetAnswers()) == 0 || res.GetAway() != "" {
			t.Fatalf("when it is back: %v, %v", res, err)
		}
		answers, req.Conditions = append(answers, res.GetAnswers()...), req.Conditions[len(res.GetAnswers()):]
	}
	for i, wants := range []string{"read the result of torn", "", "read the result of refused"} {
		a := answers[i]
		if (a.GetError() == "") != (wants == "") || !strings.Contains(a.GetError(), wants) || a.GetBroken() != (wants != "") || a.GetValue() != (wants == "") {
			t.Errorf("answer %v", a)
		}
	}
}

// Ends returns a retryable error while the store is away. An unreadable status is an answer.
func TestChildRunEndsWaitForStore(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	children := NewChildren(nil, nil, c.Store, definition.RunDefaults{})
	req := &historyv1.ChildRunEndsRequest{Children: []*historyv1.ChildRunEndRequest{
		{Child: "child-1", RunId: "r-1", Task: "child", InlineLimit: 1000},
		{Child: "torn-1", RunId: "r-1", Task: "torn", InlineLimit: 1000},
	}}
	if err := c.Store.PutMessage(t.Context(), storekey.Status("child-1", 0), &historyv1.StatusResponse{Run: &v1.Run{Id: "child-1"}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Store.Put(t.Context(), storekey.Status("torn-1", 0), []byte{0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	bringBack := takeAway(t, c)
	_, err := children.Ends(t.Context(), req)
	if app, ok := errors.AsType[*temporal.ApplicationError](err); err == nil || ok && app.NonRetryable() {
		t.Errorf("while the store is away: %v", err)
	}
	bringBack()
	res, err := children.Ends(t.Context(), req)
	if err != nil || len(res.GetAnswers()) != 2 {
		t.Fatalf("when it is back: %v, %v", res, err)
	}
	if state := res.GetAnswers()[0].GetState(); state != "completed" {
		t.Errorf("the child run ends as %s", state)
	}
	if torn := res.GetAnswers()[1]; torn.GetState() != "failed" || !strings.Contains(torn.GetError(), "cannot be read") {
		t.Errorf("a status that cannot be read: %v", torn)
	}
}
