package workers

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/signing"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// signed returns a decision about a run, or a task of it, as a gateway signs it.
func (h *handle) signed(by, role, task, verdict string) *v1.Decision {
	h.t.Helper()
	d := &v1.Decision{
		Workflow: h.id, Execution: describe(h.t, h.conn, h.id, "").GetWorkflowExecutionInfo().GetFirstRunId(), Task: task, Verdict: verdict,
		By: by, Role: role, Reason: "seen", At: timestamppb.Now(),
	}
	if err := signing.New(h.store, time.Now).Sign(h.t.Context(), d); err != nil {
		h.t.Fatal(err)
	}
	return d
}

// decide sends a decision about a task, as a gateway does.
func (h *handle) decide(update string, d *v1.Decision) error {
	h.t.Helper()
	return h.update(update, &v1.TaskCommand{Task: d.GetTask(), By: d.GetBy(), Decision: d})
}

// waitingRun submits a run that needs an operator's approval, and waits until the run waits for it.
func (c *workerSet) waitingRun(name string) *handle {
	c.t.Helper()
	in := c.input(`{name: ` + name + `, tasks: {a: {type: shell, spec: {command: x}}}}`)
	in.By, in.ByRole, in.NeedsApproval, in.SignedDecisions = "ann", v1.RoleUser, true, true
	h := c.submit(in)
	eventually(c.t, "the run waits for approval", func() bool {
		run := h.status(&v1.StatusRequest{}).GetRun()
		return run.GetState() == v1.RunPendingApproval && run.GetApproval().GetState() == v1.ApprovalPending
	})
	return h
}

func TestRunWaitsForApproval(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	h := c.waitingRun("gated")
	approve := func(d *v1.Decision) error {
		t.Helper()
		return h.update(names.ApproveRunUpdate, &v1.RunCommand{By: "eve", Decision: d})
	}
	good := h.signed("bob", v1.RoleOperator, "", v1.ApprovalApproved)
	forged := proto.CloneOf(good)
	forged.By = "eve"
	other := proto.CloneOf(good)
	other.Workflow = "another"
	for name, test := range map[string]struct {
		decision *v1.Decision
		says     string
	}{
		"no signature":         {nil, "not sent through a gateway"},
		"another's signature":  {forged, "not one of a gateway"},
		"of another run":       {other, "another task or run"},
		"of a task":            {h.signed("bob", v1.RoleOperator, "a", v1.ApprovalApproved), "another task or run"},
		"a rejection":          {h.signed("bob", v1.RoleOperator, "", v1.ApprovalRejected), "signed as rejected"},
		"of who submitted it":  {h.signed("ann", v1.RoleOperator, "", v1.ApprovalApproved), "another person decides"},
		"of an earlier attack": {forged, "not one of a gateway"},
	} {
		if err := approve(test.decision); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, payload := range []any{&v1.TaskCommand{Task: "a", By: "eve"}, "yes", nil} {
		if err := h.conn.SignalWorkflow(t.Context(), h.id, "", names.ApproveUpdate, payload); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "signals are refused", func() bool {
		var res v1.EventsResponse
		h.query(h.id, names.EventsQuery, &v1.EventsRequest{}, &res)
		signals := 0
		for _, e := range res.GetEvents() {
			if e.GetEvent() == v1.EventRefused && strings.Contains(e.GetDetail(), "a signal decides nothing") {
				signals++
			}
		}
		return signals == 3
	})
	if n := c.calls()["a"]; n != 0 {
		t.Errorf("a has started %d times", n)
	}
	if err := approve(good); err != nil {
		t.Fatal(err)
	}
	run := h.wait()
	want(t, run, v1.RunCompleted, map[string]string{"a": v1.TaskCompleted})
	if a := run.GetApproval(); a.GetState() != v1.ApprovalApproved || a.GetBy() != "bob" || a.GetReason() != "seen" || a.GetAt() == nil {
		t.Errorf("the approval is %v", a)
	}
	refusals := 0
	for _, e := range h.stored(0) {
		if e.GetEvent() == v1.EventRefused {
			refusals++
			if !strings.Contains(e.GetDetail(), "a signal") && (e.GetTask() != "" || !strings.Contains(e.GetDetail(), "eve")) {
				t.Errorf("a refusal is %v", e)
			}
		}
	}
	if refusals != 6+3 {
		t.Errorf("%d refusals are events", refusals)
	}
	replay(t, "gated", limits.Run{}, h.history(""))
}

func TestSecondDecisionAboutARunNamesTheFirst(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}})
	c.start("n")
	h := c.waitingRun("twice")
	decide := func(update string, d *v1.Decision) error {
		t.Helper()
		return h.update(update, &v1.RunCommand{Decision: d})
	}
	if err := decide(names.ApproveRunUpdate, h.signed("bob", v1.RoleOperator, "", v1.ApprovalApproved)); err != nil {
		t.Fatal(err)
	}
	c.running("a")
	wantRefused(t, decide(names.RejectRunUpdate, h.signed("carol", v1.RoleAdmin, "", v1.ApprovalRejected)), names.TaskStateError, "approved by bob at ")
	c.fake.Release("a")
	want(t, h.wait(), v1.RunCompleted, nil)
}

func TestRejectedRunStartsNothing(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	h := c.waitingRun("unwanted")
	if err := h.update(names.RejectRunUpdate, &v1.RunCommand{Decision: h.signed("bob", v1.RoleOperator, "", v1.ApprovalRejected)}); err != nil {
		t.Fatal(err)
	}
	run := h.wait()
	if run.GetState() != v1.RunRejected || run.GetReason() != v1.ReasonRejected || run.GetError() != "rejected by bob: seen" || c.calls()["a"] != 0 {
		t.Errorf("the run is %v", run)
	}
	replay(t, "unwanted", limits.Run{}, h.history(""))
}

func TestRunIsCancelledWhileItWaitsForApproval(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	h := c.waitingRun("withdrawn")
	if err := h.conn.SignalWorkflow(t.Context(), h.id, "", names.CancelSignal, &v1.RunCommand{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if run := h.wait(); run.GetState() != v1.RunCancelled || c.calls()["a"] != 0 {
		t.Errorf("the run is %v", run)
	}
}

// TestApprovalsOfATask checks that two people of the required role can approve a task, and that others cannot.
func TestApprovalsOfATask(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	in := c.input(`{name: four-eyes, tasks: {
		ok: {type: approval, spec: {message: "Go?", roles: [operator], approvals: 2}},
		go: {type: shell, spec: {command: x}, dependsOn: [ok]}}}`)
	in.By, in.ByRole, in.SignedDecisions = "ann", v1.RoleUser, true
	h := c.submit(in)
	h.until("ok", func(x *v1.Task) bool {
		return x.GetState() == v1.TaskPaused && x.GetError() == "Go? (0 of 2 have approved)"
	})
	approve := func(by, role string) error {
		t.Helper()
		return h.decide(names.ApproveUpdate, h.signed(by, role, "ok", v1.ApprovalApproved))
	}
	wantRefused(t, h.update(names.ApproveUpdate, &v1.TaskCommand{Task: "ok", By: "bob"}), names.TaskStateError, "not sent through a gateway")
	wantRefused(t, approve("ann", v1.RoleUser), names.TaskStateError, "takes decisions of the role operator; ann has the role user")
	if err := approve("bob", v1.RoleOperator); err != nil {
		t.Fatal(err)
	}
	h.until("ok", func(x *v1.Task) bool { return x.GetError() == "Go? (1 of 2 have approved)" })
	wantRefused(t, approve("bob", v1.RoleAdmin), names.TaskStateError, "was approved by bob at ")
	if err := approve("carol", v1.RoleAdmin); err != nil {
		t.Fatal(err)
	}
	run := h.wait()
	want(t, run, v1.RunCompleted, map[string]string{"ok": v1.TaskCompleted, "go": v1.TaskCompleted})
	output := run.GetTasks()["ok"].GetResult().GetOutput().AsMap()
	if list, _ := output["approvals"].([]any); len(list) != 2 || output["by"] != "carol" || output["at"] == "" {
		t.Errorf("the output is %v", output)
	}
	if got := h.lifecycle("ok", 1); got != "submitted queued paused refused approved approved completed" {
		t.Errorf("events of ok: %s", got)
	}
	replay(t, "four-eyes", limits.Run{}, h.history(""))
}

func TestApprovalTimesOut(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	h := c.submit(c.input(`{name: patience, tasks: {
		no: {type: approval, spec: {timeout: 200ms}, continueOnError: true},
		yes: {type: approval, spec: {timeout: 200ms, onTimeout: approve}},
		go: {type: shell, spec: {command: x}, dependsOn: [yes]}}}`))
	run := h.wait()
	want(t, run, v1.RunCompleted, map[string]string{"no": v1.TaskRejected, "yes": v1.TaskCompleted, "go": v1.TaskCompleted})
	if text := run.GetTasks()["no"].GetError(); !strings.Contains(text, "no decision within 200ms") {
		t.Errorf("no: %s", text)
	}
	replay(t, "patience", limits.Run{}, h.history(""))
}

// TestApprovalsSurviveContinueAsNew makes a run continue as new after the first of two approvals.
func TestApprovalsSurviveContinueAsNew(t *testing.T) {
	t.Parallel()
	c := own(t, ControlConfig{limits: limits.Run{HistoryEvents: 60}}).workers(t, nil) // so that it continues as new soon
	c.start("n")
	in := c.input(`{name: long-wait, tasks: {
		ok: {type: approval, spec: {message: "Go (now)?", approvals: 2, timeout: 1h}},
		many: {type: shell, spec: {command: x}, parallel: 40, concurrency: 4}}}`)
	in.SignedDecisions = true
	h := c.submit(in)
	h.until("ok", func(x *v1.Task) bool { return x.GetState() == v1.TaskPaused })
	if err := h.decide(names.ApproveUpdate, h.signed("bob", v1.RoleOperator, "ok", v1.ApprovalApproved)); err != nil {
		t.Fatal(err)
	}
	h.until("many", func(x *v1.Task) bool { return x.GetState() == v1.TaskCompleted })
	eventually(t, "the run has continued as new", func() bool { return len(h.executions()) > 1 })
	h.until("ok", func(x *v1.Task) bool { return x.GetError() == "Go (now)? (1 of 2 have approved)" })
	wantRefused(t, h.decide(names.ApproveUpdate, h.signed("bob", v1.RoleOperator, "ok", v1.ApprovalApproved)), names.TaskStateError, "was approved by bob")
	if err := h.decide(names.ApproveUpdate, h.signed("carol", v1.RoleOperator, "ok", v1.ApprovalApproved)); err != nil {
		t.Fatal(err)
	}
	want(t, h.wait(), v1.RunCompleted, map[string]string{"ok": v1.TaskCompleted})
}

// TestCachedResultsStayWithTheirUser runs the same workflow for two users and two operators.
func TestCachedResultsStayWithTheirUser(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	from := func(by, role string) *v1.Run {
		t.Helper()
		in := c.input(`{name: private, tasks: {
			a: {type: shell, spec: {command: x}, cache: {key: "'v1'"}},
			each: {type: shell, spec: {command: x}, foreach: [p, q], cache: {key: "'v1'"}}}}`)
		in.By, in.ByRole, in.SignedDecisions = by, role, role != ""
		run := c.submit(in).wait()
		want(t, run, v1.RunCompleted, nil)
		return run
	}
	ids := map[string]string{}
	for _, test := range []struct{ by, role, reuses string }{
		{"ann", v1.RoleUser, ""}, {"eve", v1.RoleUser, ""}, {"ann", v1.RoleUser, "ann"}, {"bob", v1.RoleOperator, ""}, {"eve", v1.RoleUser, "eve"},
		{"carol", v1.RoleAdmin, "bob"}, {"", "", "bob"},
	} {
		run := from(test.by, test.role)
		if _, known := ids[test.by]; !known {
			ids[test.by] = run.GetId()
		}
		for name, got := range map[string]string{"a": run.GetTasks()["a"].GetCachedFrom(), "each[1]": run.GetTasks()["each"].GetInstances()[1].GetCachedFrom()} {
			if test.reuses == "" && got != "" || test.reuses != "" && got != ids[test.reuses] {
				t.Errorf("%s of %s (%s) reuses %q, want that of %q", name, test.by, test.role, got, test.reuses)
			}
		}
	}
}
