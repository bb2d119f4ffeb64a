package run_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/signing"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// signedDecision returns a decision about a run, or a task of it, as a gateway signs it.
func signedDecision(h *workertest.Handle, by, role, task, verdict string) *historyv1.Decision {
	h.T.Helper()
	d := &historyv1.Decision{
		Workflow: h.ID, Execution: workertest.Describe(h.T, h.Conn, h.ID, "").GetWorkflowExecutionInfo().GetFirstRunId(), Task: task, Verdict: verdict,
		By: by, Role: role, Reason: "seen", At: timestamppb.Now(),
	}
	if err := signing.New(h.Store, time.Now).Sign(h.T.Context(), d); err != nil {
		h.T.Fatal(err)
	}
	return d
}

// sendDecision sends a decision about a task, as a gateway does.
func sendDecision(h *workertest.Handle, update string, d *historyv1.Decision) error {
	h.T.Helper()
	return sendUpdate(h, update, &historyv1.TaskCommand{Task: d.GetTask(), By: d.GetBy(), Decision: d})
}

// submitForApproval submits a run that needs an operator's approval, and waits until the run waits for it.
func submitForApproval(c *workertest.Nodes, name string) *workertest.Handle {
	c.T.Helper()
	in := c.Input(`{name: ` + name + `, tasks: {a: {type: shell, spec: {command: x}}}}`)
	in.By, in.ByRole, in.NeedsApproval, in.SignedDecisions = "ann", v1.RoleUser, true, true
	h := c.Submit(in)
	workertest.Eventually(c.T, "the run waits for approval", func() bool {
		run := h.Status(&historyv1.StatusRequest{}).GetRun()
		return run.GetState() == v1.RunPendingApproval && run.GetApproval().GetState() == v1.ApprovalPending
	})
	return h
}

func TestRunWaitsForApproval(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	h := submitForApproval(c, "gated")
	approve := func(d *historyv1.Decision) error {
		t.Helper()
		return sendUpdate(h, names.ApproveRunUpdate, &historyv1.RunCommand{By: "eve", Decision: d})
	}
	good := signedDecision(h, "bob", v1.RoleOperator, "", v1.ApprovalApproved)
	forged := proto.CloneOf(good)
	forged.By = "eve"
	for name, test := range map[string]struct {
		decision *historyv1.Decision
		says     string
	}{
		"no signature":        {nil, "not sent through a gateway"},
		"another's signature": {forged, "not from a gateway"},
		"of who submitted it": {signedDecision(h, "ann", v1.RoleOperator, "", v1.ApprovalApproved), "another person must"},
	} {
		if err := approve(test.decision); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, payload := range []any{&historyv1.TaskCommand{Task: "a", By: "eve"}, "yes", nil} {
		if err := h.Conn.SignalWorkflow(t.Context(), h.ID, "", names.ApproveUpdate, payload); err != nil {
			t.Fatal(err)
		}
	}
	workertest.Eventually(t, "signals are refused", func() bool {
		signals := 0
		for _, e := range eventsOf(h).GetEvents() {
			if e.GetEvent() == v1.EventRefused && strings.Contains(e.GetDetail(), "signals cannot approve or reject") {
				signals++
			}
		}
		return signals == 3
	})
	if n := c.Calls()["a"]; n != 0 {
		t.Errorf("a has started %d times", n)
	}
	if err := approve(good); err != nil {
		t.Fatal(err)
	}
	run := h.Wait()
	workertest.CheckRun(t, run, v1.RunCompleted, map[string]string{"a": v1.TaskCompleted})
	if a := run.GetApproval(); a.GetState() != v1.ApprovalApproved || a.GetBy() != "bob" || a.GetReason() != "seen" || a.GetAt() == nil {
		t.Errorf("the approval is %v", a)
	}
	refusals := 0
	for _, e := range storedEvents(h, 0) {
		if e.GetEvent() == v1.EventRefused {
			refusals++
			if !strings.Contains(e.GetDetail(), "signals cannot") && (e.GetTask() != "" || !strings.Contains(e.GetDetail(), "eve")) {
				t.Errorf("a refusal is %v", e)
			}
		}
	}
	if refusals != 2+3 {
		t.Errorf("%d refusals are events", refusals)
	}
	workertest.Replay(t, "gated", limits.Run{}, h.History(""))
}

// TestApprovalCoversTheWorkflowsThatARunStarts checks that the runs below an approved run have the definitions that were stored when it
// was submitted, on every level and in partitions, and that no others start.
func TestApprovalCoversTheWorkflowsThatARunStarts(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	outer, inner := storeChildWorkflow(c, "replaced", ""), storeChildWorkflow(c, "replaced", "")
	frozen := func(name, tasks string) *v1.Definition {
		return c.Input(fmt.Sprintf("{name: %s, tasks: {%s}}", name, tasks)).GetDefinition()
	}
	in := c.Input(fmt.Sprintf(`{name: covered, tasks: {
		one: {type: run, spec: {workflow: %[1]s}}, many: {type: run, parallel: 501, maxFailures: 501, spec: {workflow: "${{ input.index == 0 ? '%[2]s' : 'x' }}"}},
		other: {type: run, spec: {workflow: "${{ 'oth' + 'er' }}"}}}}`, outer, inner))
	in.Workflows = &historyv1.FrozenWorkflows{Definitions: map[string]*v1.Definition{
		outer: frozen(outer, "down: {type: run, spec: {workflow: "+inner+"}}"), inner: frozen(inner, "approved: {type: shell, spec: {command: x}}"),
	}}
	run := c.Submit(in).Wait()
	workertest.CheckRun(t, run, v1.RunFailed, map[string]string{"one": "completed", "many": "completed", "other": "failed child_run"})
	if calls := c.Calls(); calls["approved"] != 2 || calls["replaced"] > 0 {
		t.Errorf("it started %v", calls)
	}
	if text := run.GetTasks()["other"].GetError(); !strings.Contains(text, `covers the stored workflows that it names, and not "other"`) {
		t.Error(text)
	}
}

func TestRejectedRunStartsNothing(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	h := submitForApproval(c, "unwanted")
	if err := sendUpdate(h, names.CancelTaskUpdate, &historyv1.TaskCommand{Task: "a", By: "ann"}); err != nil { // the run ends regardless
		t.Fatal(err)
	}
	if err := sendUpdate(h, names.RejectRunUpdate, &historyv1.RunCommand{Decision: signedDecision(h, "bob", v1.RoleOperator, "", v1.ApprovalRejected)}); err != nil {
		t.Fatal(err)
	}
	run := h.Wait()
	if run.GetState() != v1.RunRejected || run.GetReason() != v1.ReasonRejected || run.GetError() != "rejected by bob: seen" || c.Calls()["a"] != 0 {
		t.Errorf("the run is %v", run)
	}
	workertest.CheckRun(t, run, v1.RunRejected, map[string]string{"a": "rejected rejected"})
	var rejected []string
	for _, e := range eventsOf(h).GetEvents() {
		if e.GetEvent() == v1.EventRejected {
			rejected = append(rejected, e.GetTask()+": "+e.GetDetail()+" "+e.GetData().GetFields()["by"].GetStringValue())
		}
	}
	if want := []string{"a: rejected by bob: seen ", ": rejected by bob: seen bob"}; !slices.Equal(rejected, want) {
		t.Errorf("events %q, want %q", rejected, want)
	}
	workertest.Replay(t, "unwanted", limits.Run{}, h.History(""))
}

// TestCancelSignalForATaskIsRefused checks that a signal that names a task, or one that does not say what it means, does not cancel
// the run.
func TestCancelSignalForATaskIsRefused(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	h := submitForApproval(c, "kept")
	signal := func(payload any) {
		if err := h.Conn.SignalWorkflow(t.Context(), h.ID, "", names.CancelSignal, payload); err != nil {
			t.Fatal(err)
		}
	}
	refused := map[string]int{"signals cannot cancel a task": 2, "neither a reason nor": 2}
	for _, payload := range []any{
		map[string]any{"task": "a"}, map[string]any{"task": "a", "reason": "slow", "by": "eve"},
		map[string]any{"task": 42}, map[string]any{"tasks": "a"},
	} {
		signal(payload)
	}
	workertest.Eventually(t, "the signals are refused", func() bool {
		found := map[string]int{}
		for _, e := range eventsOf(h).GetEvents() {
			for text := range refused {
				if e.GetEvent() == v1.EventRefused && strings.Contains(e.GetDetail(), text) {
					found[text]++
				}
			}
		}
		return maps.Equal(found, refused)
	})
	signal("enough")
	if run := h.Wait(); run.GetState() != v1.RunCancelled || !strings.Contains(run.GetError(), "enough") {
		t.Errorf("the run is %v", run)
	}
	workertest.Replay(t, "kept", limits.Run{}, h.History(""))
}

// TestTwoApprovalsOfRequiredRoleReleaseTask checks that two people of the required role can approve a task, and that
// others cannot.
func TestTwoApprovalsOfRequiredRoleReleaseTask(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	in := c.Input(`{name: four-eyes, tasks: {
		ok: {type: approval, spec: {message: "Go?", roles: [operator], approvals: 2}},
		go: {type: shell, spec: {command: x}, dependsOn: [ok]}}}`)
	in.By, in.ByRole, in.SignedDecisions = "ann", v1.RoleUser, true
	h := c.Submit(in)
	h.AwaitTask("ok", func(x *v1.Task) bool {
		return x.GetState() == v1.TaskPaused && x.GetError() == "Go? (0 of 2 have approved)"
	})
	approve := func(by, role string) error {
		t.Helper()
		return sendDecision(h, names.ApproveUpdate, signedDecision(h, by, role, "ok", v1.ApprovalApproved))
	}
	wantRefused(t, sendUpdate(h, names.ApproveUpdate, &historyv1.TaskCommand{Task: "ok", By: "bob"}), names.TaskStateError, "not sent through a gateway")
	wantRefused(t, approve("ann", v1.RoleUser), names.NotAllowedError, "requires a decision by the role operator; ann has the role user")
	if err := approve("bob", v1.RoleOperator); err != nil {
		t.Fatal(err)
	}
	h.AwaitTask("ok", func(x *v1.Task) bool { return x.GetError() == "Go? (1 of 2 have approved)" })
	wantRefused(t, approve("bob", v1.RoleAdmin), names.TaskStateError, "was already approved by bob at ")
	if err := approve("carol", v1.RoleAdmin); err != nil {
		t.Fatal(err)
	}
	run := h.Wait()
	workertest.CheckRun(t, run, v1.RunCompleted, map[string]string{"ok": v1.TaskCompleted, "go": v1.TaskCompleted})
	output := run.GetTasks()["ok"].GetResult().GetOutput().AsMap()
	if list, _ := output["approvals"].([]any); len(list) != 2 || output["by"] != "carol" || output["at"] == "" {
		t.Errorf("the output is %v", output)
	}
	if got := lifecycleOf(h, "ok", 1); got != "submitted queued paused refused approved approved completed" {
		t.Errorf("events of ok: %s", got)
	}
	workertest.Replay(t, "four-eyes", limits.Run{}, h.History(""))
}

// TestApproversFillInTheOutputOfAnApproval checks that a task reads what an approver has filled in, that the submitter does not decide
// about a task that excludes it, and that people are reminded.
func TestApproversFillInTheOutputOfAnApproval(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	in := c.Input(`{name: filled-in, inputs: {tag: {default: v1, pattern: "v[0-9]+"}}, tasks: {
		ok: {type: approval, spec: {message: "Where?", approvers: {not: submitter}, remindAfter: 1ms, inputs: {region: {enum: [eu, us], required: true}}}},
		go: {type: shell, spec: {command: x}, dependsOn: [ok], condition: "parent.ok.output.region == 'eu'"}}}`)
	in.By, in.ByRole, in.SignedDecisions = "ann", v1.RoleUser, true
	h := c.Submit(in)
	h.AwaitTask("ok", func(x *v1.Task) bool { return x.GetState() == v1.TaskPaused })
	approve := func(by string, input map[string]any) error {
		t.Helper()
		d := signedDecision(h, by, v1.RoleOperator, "ok", v1.ApprovalApproved)
		d.Input, _ = structpb.NewStruct(input)
		if err := signing.New(h.Store, time.Now).Sign(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		return sendDecision(h, names.ApproveUpdate, d)
	}
	wantRefused(t, approve("ann", map[string]any{"region": "eu"}), names.NotAllowedError, "another person must decide")
	wantRefused(t, approve("bob", nil), names.InvalidInputError, "input region is missing")
	workertest.Eventually(t, "people are reminded", func() bool {
		return slices.ContainsFunc(eventsOf(h).GetEvents(), func(e *v1.Event) bool { return e.GetEvent() == v1.EventReminded })
	})
	if err := approve("bob", map[string]any{"region": "eu"}); err != nil {
		t.Fatal(err)
	}
	run := h.Wait()
	workertest.CheckRun(t, run, v1.RunCompleted, map[string]string{"ok": v1.TaskCompleted, "go": v1.TaskCompleted})
	if output := run.GetTasks()["ok"].GetResult().GetOutput().AsMap(); output["region"] != "eu" || output["by"] != "bob" {
		t.Errorf("the output is %v", output)
	}
	workertest.Replay(t, "filled-in", limits.Run{}, h.History(""))
}

// TestResetRepeatsNothingUnapproved resets an approved run to a point after its approval, which repeats what was approved, and to one
// before, at which Temporal gives it the decision again, or not.
func TestResetRepeatsNothingUnapproved(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	h := submitForApproval(c, "reset")
	first := firstWorkflowTask(h)
	if err := sendUpdate(h, names.ApproveRunUpdate, &historyv1.RunCommand{Decision: signedDecision(h, "bob", v1.RoleOperator, "", v1.ApprovalApproved)}); err != nil {
		t.Fatal(err)
	}
	h.Wait()
	again := func(calls int) {
		t.Helper()
		run := h.Wait()
		workertest.CheckRun(t, run, v1.RunCompleted, map[string]string{"a": v1.TaskCompleted})
		if n := c.Calls()["a"]; n != calls || run.GetApproval().GetBy() != "bob" {
			t.Errorf("a has started %d times, want %d; the approval is %v", n, calls, run.GetApproval())
		}
	}
	tasks := completedTasks(h.History(""))
	h = resetRun(h, tasks[len(tasks)-2])
	again(2)
	h = resetRun(h, first) // Temporal sends the decision again
	again(3)
	h = resetRun(h, first, enumspb.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE)
	workertest.Eventually(t, "the run waits for approval", func() bool {
		return h.Status(&historyv1.StatusRequest{}).GetRun().GetApproval().GetState() == v1.ApprovalPending
	})
	if err := sendUpdate(h, names.CancelTaskUpdate, &historyv1.TaskCommand{Task: "a", By: "ann"}); err != nil { // the run takes part in the round
		t.Fatal(err)
	}
	if n := c.Calls()["a"]; n != 3 {
		t.Errorf("a has started %d times without an approval", n)
	}
	h.Cancel("enough")
	h.Wait()
}

// TestFinallyAloneWaitsForTheApprovalOfItsRun repeats the `finally` of a run that was never approved: it can be cancelled while it waits,
// and runs nothing else after its approval.
func TestFinallyAloneWaitsForTheApprovalOfItsRun(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	in := c.Input(`{name: tidy, tasks: {a: {type: shell, spec: {command: x}}}, finally: {f: {type: shell, spec: {command: x}}}}`)
	in.By, in.ByRole, in.NeedsApproval, in.SignedDecisions = "ann", v1.RoleUser, true, true
	h := c.Submit(in)
	awaitApproval := func() {
		t.Helper()
		workertest.Eventually(t, "the run waits for approval", func() bool {
			return h.Status(&historyv1.StatusRequest{}).GetRun().GetApproval().GetState() == v1.ApprovalPending
		})
	}
	awaitApproval()
	if err := sendUpdate(h, names.RejectRunUpdate, &historyv1.RunCommand{Decision: signedDecision(h, "bob", v1.RoleOperator, "", v1.ApprovalRejected)}); err != nil {
		t.Fatal(err)
	}
	workertest.CheckRun(t, h.Wait(), v1.RunRejected, map[string]string{"a": "rejected rejected", "f": "rejected rejected"})
	h = h.Rerun(in, 1, &historyv1.Rerun{FinallyOnly: true})
	awaitApproval()
	h.Cancel(&historyv1.RunCommand{Reason: "enough", RequestId: "1"})
	h.Wait()
	if calls := c.Calls(); calls["a"]+calls["f"] > 0 {
		t.Fatalf("it started %v without an approval", calls)
	}
	h = h.Rerun(in, 2, &historyv1.Rerun{FinallyOnly: true})
	awaitApproval()
	if err := sendUpdate(h, names.ApproveRunUpdate, &historyv1.RunCommand{Decision: signedDecision(h, "bob", v1.RoleOperator, "", v1.ApprovalApproved)}); err != nil {
		t.Fatal(err)
	}
	h.Wait()
	if calls := c.Calls(); calls["a"] > 0 || calls["f"] != 1 {
		t.Errorf("it started %v", calls)
	}
	workertest.Replay(t, "tidy", limits.Run{}, h.History(""))
}

// TestSubmitterDecidesNowhereInARun checks that a task with `not: submitter` refuses who submitted the run: in a fan-out that is larger
// than a partition, in child runs on two levels, and in the next generation, which another person has started.
func TestSubmitterDecidesNowhereInARun(t *testing.T) {
	t.Parallel()
	c := workertest.SharedWithin(t, inPartitions).Nodes(t, nil)
	c.Start("n")
	const ask = "type: approval, spec: {approvers: {not: submitter}}"
	in := c.Input(fmt.Sprintf(`{name: nobody, tasks: {each: {%[1]s, parallel: 9, maxFailures: 9}, ask: {%[1]s},
		kid: {type: run, spec: {definition: {name: kid, tasks: {down: {type: run, spec: {definition: {name: grandkid, tasks: {ask: {%[1]s}}}}}}}}}}}`, ask))
	in.By, in.ByRole, in.SignedDecisions = "ann", v1.RoleUser, true
	h := c.Submit(in)
	decide := func(h *workertest.Handle, task, by string) error {
		t.Helper()
		return sendDecision(h, names.RejectUpdate, signedDecision(h, by, v1.RoleOperator, task, v1.ApprovalRejected))
	}
	hasChild := func(x *v1.Task) bool { return x.GetChildRun() != "" && x.GetState() == v1.TaskRunning }
	isAsked := func(x *v1.Task) bool { return x.GetState() == v1.TaskPaused }
	grandkid := childRun(c, childRun(c, h.AwaitTask("kid", hasChild)).AwaitTask("down", hasChild))
	grandkid.AwaitTask("ask", isAsked)
	wantRefused(t, decide(grandkid, "ask", "ann"), names.NotAllowedError, "ann submitted the run")
	workertest.Eventually(t, "all instances wait", func() bool {
		return h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["each"].GetCounts()[v1.TaskPaused] == 9
	})
	for _, task := range []string{"ask", "each[0]", "each[8]"} {
		wantRefused(t, decide(h, task, "ann"), names.NotAllowedError, "ann submitted the run")
	}
	if err := decide(h, "each[0]", "bob"); err != nil {
		t.Fatal(err)
	}
	h.Cancel("enough")
	h.Wait()
	again := proto.CloneOf(in)
	again.By, again.ByRole = "carol", v1.RoleOperator
	h = h.Rerun(again, 1, &historyv1.Rerun{Failed: true})
	h.AwaitTask("ask", isAsked)
	wantRefused(t, decide(h, "ask", "ann"), names.NotAllowedError, "ann submitted the run")
	if err := decide(h, "ask", "carol"); err != nil {
		t.Error(err)
	}
	h.Cancel("enough")
	h.Wait()
}

func TestApprovalTimesOut(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	h := c.Submit(c.Input(`{name: patience, tasks: {
		no: {type: approval, spec: {timeout: 200ms}, continueOnError: true},
		yes: {type: approval, spec: {timeout: 200ms, onTimeout: approve}},
		go: {type: shell, spec: {command: x}, dependsOn: [yes], condition: "parent.yes.output.by == ''"}}}`))
	run := h.Wait()
	workertest.CheckRun(t, run, v1.RunCompleted, map[string]string{"no": v1.TaskRejected, "yes": v1.TaskCompleted, "go": v1.TaskCompleted})
	if text := run.GetTasks()["no"].GetError(); !strings.Contains(text, "no decision within 200ms") {
		t.Errorf("no: %s", text)
	}
	workertest.Replay(t, "patience", limits.Run{}, h.History(""))
}

func TestApprovalTaskWaitsForDecision(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	in := c.Input(`{name: approval, context: {what: v2}, tasks: {
		build: {type: shell, spec: {command: x}},
		ok: {type: approval, spec: {message: "deploy ${{ workflow.context.what }}?"}, dependsOn: [build]},
		deploy: {type: shell, spec: {command: x}, dependsOn: [ok], condition: "parent.ok.output.by == 'me'"},
		no: {type: approval, dependsOn: [build], continueOnError: true}}}`)
	h := c.Submit(in)
	ok := h.AwaitTask("ok", func(x *v1.Task) bool { return x.GetState() == "paused" })
	if ok.GetReason() != "approval" || ok.GetError() != "deploy v2?" {
		t.Errorf("ok is %v", ok)
	}
	h.AwaitTask("no", func(x *v1.Task) bool { return x.GetState() == "paused" })
	if state := h.Status(&historyv1.StatusRequest{}).GetRun().GetState(); state != "pending_approval" {
		t.Errorf("the run is %s", state)
	}
	if err := sendUpdate(h, names.ApproveUpdate, &historyv1.TaskCommand{Task: "ok", By: "me"}); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, sendUpdate(h, names.ApproveUpdate, &historyv1.TaskCommand{Task: "ok"}), names.TaskStateError, "ok")
	if err := sendUpdate(h, names.RejectUpdate, &historyv1.TaskCommand{Task: "no", Reason: "too late"}); err != nil {
		t.Fatal(err)
	}
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"ok": "completed", "deploy": "completed", "no": "rejected"})
	if got := run.Tasks["no"].GetError(); !strings.Contains(got, "too late") {
		t.Errorf("rejected: %s", got)
	}
	if got := lifecycleOf(h, "ok", 1); got != "submitted queued paused approved completed" {
		t.Errorf("events of ok: %s", got)
	}
	data := map[string]map[string]any{}
	for _, e := range storedEvents(h, 0) {
		data[e.GetTask()+" "+e.GetEvent()] = e.GetData().AsMap()
	}
	for event, want := range map[string]map[string]any{
		"ok paused": {"reason": "approval", "message": "deploy v2?"}, "ok approved": {"by": "me"}, "no rejected": {"reason": "too late"},
	} {
		if !maps.Equal(data[event], want) {
			t.Errorf("data of %s: %v, want %v", event, data[event], want)
		}
	}
	workertest.Replay(t, "approval", limits.Run{}, h.History(""))
}
