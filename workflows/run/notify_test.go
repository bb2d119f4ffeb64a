package run_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// signingKey signs the webhooks of tests.
var signingKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))

// receiver is a server that gets the webhooks of a test.
type receiver struct {
	t       *testing.T
	path    string
	refuses int // how many requests it answers with an error first

	mu   sync.Mutex
	got  []map[string]any // documents, by arrival
	keys map[string]int   // requests by idempotency key
}

// newReceiver starts a receiver and stores it as the target of a name that is unique to the test.
func newReceiver(c *workertest.Nodes, refuses int) (r *receiver, target string) {
	c.T.Helper()
	target = names.NewRunID("hook")
	return newReceiverNamed(c, target, refuses), target
}

// newReceiverNamed starts a receiver and stores it as a target.
func newReceiverNamed(c *workertest.Nodes, target string, refuses int) *receiver {
	c.T.Helper()
	r := &receiver{t: c.T, path: "/" + target, refuses: refuses, keys: map[string]int{}}
	server := httptest.NewServer(r)
	c.T.Cleanup(server.Close)
	if _, err := c.Vault.Set(c.T.Context(), target, []byte(signingKey), v1.RoleOperator, "test"); err != nil {
		c.T.Fatal(err)
	}
	config := &v1.NotificationTarget_Webhook{Webhook: &v1.WebhookTarget{Url: server.URL + r.path, Secret: "store:" + target}}
	if _, _, err := c.Targets.Put(c.T.Context(), target, &v1.NotificationTarget{Config: config}, "test"); err != nil {
		c.T.Fatal(err)
	}
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path != r.path { // for an earlier receiver, which had the same port
		http.NotFound(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	verifier, err := standardwebhooks.NewWebhook(signingKey)
	if err == nil {
		err = verifier.Verify(body, req.Header)
	}
	if err != nil {
		r.t.Errorf("the signature is wrong: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[req.Header.Get(standardwebhooks.HeaderWebhookID)]++
	if r.refuses > 0 {
		r.refuses--
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	var document map[string]any
	if err := json.Unmarshal(body, &document); err != nil {
		r.t.Error(err)
	}
	r.got = append(r.got, document)
}

// await waits until the receiver has n documents, and returns them.
func (r *receiver) await(n int) (got []map[string]any) {
	r.t.Helper()
	workertest.Eventually(r.t, fmt.Sprintf("%d messages arrive", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		got = r.got
		return len(got) >= n
	})
	return got
}

func TestEndOfARunIsTold(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"build": {fake.Exit(1), {}}})
	c.Start("a")
	hook, target := newReceiver(c, 1)
	h := c.Submit(c.Input(fmt.Sprintf(`
name: told
tasks: { build: { type: shell, spec: { command: x }, retry: { maxRetries: 0 } } }
notify:
  - { to: %[1]s, on: [cancelled, completed], message: never }
  - { to: %[1]s, on: [failed], if: run.name != 'told', message: never }
  - { to: %[1]s, on: [failed], if: "run.failed == ['build']", message: "${{ run.name }} is red: ${{ run.failed.join(', ') }}" }
  - { to: %[1]s, on: [failed], message: doubled }
`, target)))
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"build": "failed"})
	workertest.Replay(t, "notify-outbox", limits.Run{}, h.History(""))
	document := hook.await(1)[0]
	data := document["data"].(map[string]any)
	if document["type"] != "run.failed" || data["run"] != h.ID || data["state"] != v1.RunFailed || data["message"] != "told is red: build" ||
		!strings.HasPrefix(data["title"].(string), h.ID+" failed: ") || data["failures"] != 1.0 {
		t.Errorf("the document is %v", document)
	}
	if len(hook.keys) != 1 { // all requests have been answered
		t.Errorf("the tries had the keys %v", hook.keys)
	}
	var events historyv1.EventSlice
	workertest.Eventually(t, "the outcome is recorded", func() bool {
		key := names.NotificationKey(h.Home(), 0, v1.NotifyFailed, "", target)
		err := c.Store.GetMessage(t.Context(), storekey.Notified(h.Home(), 0, key), &events)
		return err == nil && len(events.GetEvents()) == 2
	})
	if first, last := events.GetEvents()[0], events.GetEvents()[1]; first.GetEvent() != v1.EventNotifyFailed || !strings.Contains(first.GetDetail(), "(it is tried again)") ||
		last.GetEvent() != v1.EventNotified || last.GetDetail() != target+" was told of failed: 200 OK" {
		t.Errorf("the events are %v", events.GetEvents())
	}
	if id := names.NotifyWorkflowID(h.ID, 0, v1.NotifyFailed, ""); c.Conn.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil) != nil {
		t.Errorf("workflow %s did not complete", id)
	}
}

// TestOpenRunTellsWhatHappens checks the events of an open run: an approval, and the first of its dead letters.
func TestOpenRunTellsWhatHappens(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"build": {fake.Exit(1), fake.Exit(1)}, "test": {fake.Exit(1), fake.Exit(1)}})
	c.Start("a")
	hook, target := newReceiver(c, 0)
	h := c.Submit(c.Input(fmt.Sprintf(`
name: open
tasks:
  build: { type: shell, spec: { command: x }, retry: { maxRetries: 1, backoffMs: 1 } }
  test: { type: shell, dependsOn: [build], when: always, spec: { command: x }, retry: { maxRetries: 1, backoffMs: 1 } }
  ask: { type: approval, dependsOn: [test], when: always, spec: { message: "Deploy?", remindAfter: 100ms, inputs: { tag: { type: string, default: v1 } } } }
notify:
  - { to: %[1]s, on: [waiting_approval, dead_letter], message: "${{ event }} ${{ task }}" }
`, target)))
	h.AwaitTask("ask", func(task *v1.Task) bool { return task.GetState() == v1.TaskPaused })
	var got []string
	for _, document := range hook.await(3) {
		data := document["data"].(map[string]any)
		title := strings.TrimPrefix(data["title"].(string), h.ID)
		got = append(got, fmt.Sprint(document["type"], " ", data["message"], " ", data["failures"].(float64) > 0, title))
	}
	slices.Sort(got)
	if want := []string{"run.dead_letter dead_letter  true has a dead letter", "run.waiting_approval waiting_approval ask\n\nIts inputs:\n- tag: string, default \"v1\" true ask still waits for an approval: Deploy?", "run.waiting_approval waiting_approval ask\n\nIts inputs:\n- tag: string, default \"v1\" true ask waits for an approval: Deploy?"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	h.Cancel("enough")
	h.Wait()
}

// TestDecidedApprovalIsNoLongerAskedFor checks that a message that its receiver refused is not sent again once the approval is decided.
func TestDecidedApprovalIsNoLongerAskedFor(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"after": {{Block: true}}})
	c.Start("a")
	hook, target := newReceiver(c, 100)
	h := c.Submit(c.Input(fmt.Sprintf(`
name: stale
tasks:
  ask: { type: approval, spec: { message: "Deploy?" } }
  after: { type: shell, dependsOn: [ask], spec: { command: x } }
notify: [{ to: %s, on: [waiting_approval] }]
`, target)))
	workertest.Eventually(t, "the first try fails", func() bool {
		hook.mu.Lock()
		defer hook.mu.Unlock()
		return len(hook.keys) > 0
	})
	if err := sendDecision(h, names.ApproveUpdate, signedDecision(h, "bob", v1.RoleOperator, "ask", v1.ApprovalApproved)); err != nil {
		t.Fatal(err)
	}
	c.AwaitRunning("after")
	if err := c.Conn.GetWorkflow(t.Context(), names.NotifyWorkflowID(h.ID, 0, v1.NotifyApproval, "ask"), "").Get(t.Context(), nil); err != nil {
		t.Error(err)
	}
	var events historyv1.EventSlice
	err := c.Store.GetMessage(t.Context(), storekey.Notified(h.Home(), 0, names.NotificationKey(h.Home(), 0, v1.NotifyApproval, "ask", target)), &events)
	if n := len(events.GetEvents()); err != nil || n == 0 || !strings.Contains(events.GetEvents()[n-1].GetDetail(), "it was decided before the message could be delivered") {
		t.Errorf("%v: the events are %v", err, events.GetEvents())
	}
	c.Fake.Release("after")
	h.Wait()
}

// TestDeadLetterOfTheLastTaskIsTold checks that a run that ends at once leaves no event untold.
func TestDeadLetterOfTheLastTaskIsTold(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"build": {fake.Exit(1), fake.Exit(1)}})
	c.Start("a")
	hook, target := newReceiver(c, 0)
	h := c.Submit(c.Input(fmt.Sprintf("{name: last, tasks: {build: {type: shell, spec: {command: x}, retry: {maxRetries: 1, backoffMs: 1}}}, notify: [{to: %s, on: [dead_letter]}]}", target)))
	h.Wait()
	if document := hook.await(1)[0]; document["type"] != "run.dead_letter" {
		t.Errorf("the document is %v", document)
	}
}

// TestLateAndRecoveredRunsAreTold checks the messages about an open run that is late, and about a run that completes after the one before
// it has failed.
func TestLateAndRecoveredRunsAreTold(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"build": {{Block: true}, {}}})
	c.Start("a")
	hook, target := newReceiver(c, 0)
	name := names.NewRunID("nightly")
	in := fmt.Sprintf(`
name: %s
expectedWithin: 100ms
tasks: { build: { type: shell, spec: { command: x }, retry: { maxRetries: 0 } } }
notify: [{ to: %s, on: [late, completed, recovered] }]
`, name, target)
	late := c.Submit(c.Input(in))
	hook.await(1)
	if err := c.Conn.TerminateWorkflow(t.Context(), late.ID, "", "a test"); err != nil {
		t.Fatal(err)
	}
	workertest.Eventually(t, "the failed run is listed", func() bool {
		query := fmt.Sprintf("WorkflowType = '%s' AND %s = '%s' AND ExecutionStatus = 'Terminated'", names.RunWorkflow, names.WorkflowAttribute, name)
		count, err := c.Conn.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		return err == nil && count.GetCount() == 1
	})
	c.Submit(c.Input(strings.Replace(in, "100ms", "1h", 1))).Wait()
	var got []string
	for _, document := range hook.await(2) {
		got = append(got, fmt.Sprint(document["type"]))
	}
	if want := []string{"run.late", "run.recovered"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestTerminatedRunIsTold checks that the leader tells people about a run that its own workflow could not report.
func TestTerminatedRunIsTold(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"build": {{Block: true}}})
	c.Start("a")
	hook, target := newReceiver(c, 0)
	h := c.Submit(c.Input(fmt.Sprintf(`
name: cut
tasks: { build: { type: shell, spec: { command: x } } }
finally: { tidy: { type: shell, spec: { command: x } } }
notify: [{ to: %s, on: [failed] }]
`, target)))
	c.AwaitRunning("build")
	if err := c.Conn.TerminateWorkflow(t.Context(), h.ID, "", "a test"); err != nil {
		t.Fatal(err)
	}
	document := hook.await(1)[0]
	data, _ := document["data"].(map[string]any)
	if data["run"] != h.ID || data["reason"] != v1.ReasonTerminated || !strings.Contains(fmt.Sprint(data["error"]), "switchyard runs retry "+h.ID+" --finally-only") {
		t.Errorf("the document is %v", document)
	}
}

// TestRunThatNeverBeginsIsTold checks the ends of runs whose tasks have never been started.
func TestRunThatNeverBeginsIsTold(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"wait": {{Block: true}}})
	c.Start("a")
	hook, target := newReceiver(c, 0)
	input := func(more string) *historyv1.RunInput {
		return c.Input(fmt.Sprintf("{name: %s, %s tasks: {wait: {type: shell, spec: {command: x}}}, notify: [{to: %s, on: [failed, cancelled], message: \"${{ event }} ${{ run.reason }}\"}]}", target, more, target))
	}
	unreadable := c.Submit(input("inputs: {tag: {type: string, required: true}},"))
	cancelled, rejected := input(""), input("")
	cancelled.NeedsApproval, rejected.NeedsApproval = true, true
	asks, no := c.Submit(cancelled), c.Submit(rejected)
	asks.Cancel("enough")
	if err := sendUpdate(no, names.RejectRunUpdate, &historyv1.RunCommand{By: "bob", Decision: signedDecision(no, "bob", v1.RoleOperator, "", v1.ApprovalRejected)}); err != nil {
		t.Fatal(err)
	}
	first := c.Submit(input("concurrency: {maxRuns: 1, strategy: queue},"))
	c.AwaitRunning("wait")
	second := c.Submit(input("concurrency: {maxRuns: 1, strategy: queue},"))
	second.Cancel("enough")
	want := map[string]string{unreadable.ID: "failed bad_definition", asks.ID: "cancelled cancelled", no.ID: "failed rejected", second.ID: "cancelled cancelled"}
	got := map[string]string{}
	for _, document := range hook.await(len(want)) {
		data := document["data"].(map[string]any)
		got[data["run"].(string)] = data["message"].(string)
	}
	if !maps.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	c.Fake.Release("wait")
	first.Wait()
}

// TestLateScheduleIsTold checks the message about a schedule that may have started no run.
func TestLateScheduleIsTold(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	hook, target := newReceiver(c, 0)
	since := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	h, err := c.Conn.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: names.NotifyScheduleID(target, since), TaskQueue: names.ControlQueue}, names.NotifyWorkflow, &historyv1.NotifyInput{
		Event: v1.NotifyLate, At: timestamppb.New(since), Run: &historyv1.RunView{Name: target, Trigger: v1.TriggerSchedule, Error: "no run has completed by 06:00"},
		Notify: []*v1.Notification{{To: target, On: []string{v1.NotifyLate}, If: "run.id == '' && run.trigger == 'schedule'", Message: "where is ${{ run.name }}?"}},
	})
	if err != nil || h.Get(t.Context(), nil) != nil {
		t.Fatalf("%v, %v", err, h)
	}
	document := hook.await(1)[0]
	data := document["data"].(map[string]any)
	if _, hasRun := data["run"]; hasRun || document["type"] != "schedule.late" || data["workflow"] != target || data["message"] != "where is "+target+"?" ||
		data["title"] != "the schedule of "+target+" is late: no run has completed by 06:00" || document["timestamp"] != "2026-11-30T06:00:00Z" {
		t.Errorf("the document is %v", document)
	}
}
