package flight

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// sharing returns a definition whose tasks share workspace w and are not retried more than once.
func sharing(names ...string) *v1.Definition {
	def := tasks(names...)
	for _, task := range def.GetTasks() {
		task.Workspace, task.Retry = "w", &v1.RetryPolicy{MaxRetries: proto.Int32(1), BackoffMs: proto.Int32(1)}
	}
	return def
}

// seeks returns the tasks for which the run asks for a node, each with the node that its workspace needs.
func (p *play) seeks() (req *historyv1.PlaceRequest, text string) {
	req = p.PlaceRequest(false)
	for _, r := range req.GetRequests() {
		text += strings.TrimSuffix(r.GetTask()+"@"+r.GetWorkspace().GetNode(), "@") + " "
	}
	return req, strings.TrimSpace(text)
}

// runOn places what is asked for on a node, and dispatches it.
func (p *play) runOn(node string) {
	req, _ := p.seeks()
	res := &historyv1.PlaceResponse{Epoch: "one", Number: 7}
	for _, q := range req.GetRequests() {
		res.Assigned = append(res.Assigned, &historyv1.Assignment{Task: q.GetTask(), Claim: q.GetClaim(), Node: node, Queue: "q"})
	}
	p.fly(p.PlaceAnswered(req, res, false))
	p.round()
	for u := p.NextDispatch(); u != nil; u = p.NextDispatch() {
		p.Dispatched(u)
	}
}

// end ends the attempt of a task.
func (p *play) end(task int, answer Answer) {
	p.fly(p.Answered(p.UnitOf(task), answer, start))
	p.round()
}

var completed = Answer{Kind: Answered, Response: &historyv1.ExecuteResponse{State: v1.TaskCompleted, Node: "n"}}

// TestTasksOfAWorkspaceFollowTheFirst checks that tasks that are ready at once run one after the other, where the first one ran.
func TestTasksOfAWorkspaceFollowTheFirst(t *testing.T) {
	t.Parallel()
	def := sharing("a", "b:container", "c")
	def.Tasks["b"].Resources, def.Tasks["c"].Resources = &v1.Resources{Cores: proto.Float64(8)}, &v1.Resources{MemoryMb: 512, Gpus: 1}
	p := begin(t, def)
	p.admit()
	p.heard("all are ready", "Wait b: waits for task a, which uses workspace w", "Wait c: waits for task a, which uses workspace w")
	req, text := p.seeks()
	if text != "a" || req.GetRequests()[0].GetConstraints().GetRequiresExecutors()[0] != v1.TypeContainer {
		t.Fatalf("the run asks for %v", req)
	}
	if later := req.GetRequests()[0].GetLater(); later.GetCores() != 8 || later.GetMemoryMb() != 512 || later.GetGpus() != 1 {
		t.Errorf("the node must have %v", later)
	}
	p.runOn("n")
	if w := p.WorkspaceOf(1); w.GetName() != "w" || w.GetUsed() {
		t.Errorf("before a task has completed, b starts with %v", w)
	}
	p.end(0, completed)
	if req, text = p.seeks(); text != "b@n" || req.GetRequests()[0].GetPlacementTimeout().AsDuration() != 5*time.Minute {
		t.Fatalf("after a, the run asks for %v", req)
	}
	if w := p.WorkspaceOf(1); !w.GetUsed() {
		t.Errorf("after a task has completed, b starts with %v", w)
	}
	p.runOn("n")
	p.end(1, Answer{Kind: Answered, Response: &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: v1.ReasonExitCode, Node: "n"}})
	if _, text = p.seeks(); text != "c@n" {
		t.Errorf("while b waits for its retry, the run asks for %s", text)
	}
}

// TestWorkspaceMovesUntilATaskHasUsedIt checks which tasks decide on the node of their workspace.
func TestWorkspaceMovesUntilATaskHasUsedIt(t *testing.T) {
	t.Parallel()
	failed, lost := dag.Failure{State: v1.TaskFailed, Reason: v1.ReasonExitCode}, dag.Failure{State: v1.TaskLost, Reason: v1.ReasonNodeLost}
	for name, test := range map[string]struct {
		rec  dag.Record
		want bool
	}{
		"never placed":          {rec: dag.Record{State: v1.TaskQueued}},
		"handed back":           {rec: dag.Record{State: v1.TaskQueued, Node: "n"}},
		"skipped":               {rec: dag.Record{State: v1.TaskSkipped}},
		"placed":                {dag.Record{State: v1.TaskAssigned, Node: "n"}, true},
		"runs":                  {dag.Record{State: v1.TaskRunning, Node: "n"}, true},
		"completed":             {dag.Record{State: v1.TaskCompleted, Node: "n"}, true},
		"failed":                {dag.Record{State: v1.TaskFailed, Reason: v1.ReasonExitCode, Node: "n"}, true},
		"retried after failure": {dag.Record{State: v1.TaskQueued, Node: "n", Failure: failed}, true},
		"retried after loss":    {rec: dag.Record{State: v1.TaskQueued, Node: "n", Failure: lost}},
		"lost":                  {rec: dag.Record{State: v1.TaskLost, Reason: v1.ReasonNodeLost, Node: "n"}},
		"lost too often":        {rec: dag.Record{State: v1.TaskDeadLetter, Reason: v1.ReasonNodeLost, Node: "n"}},
	} {
		if got := usesWorkspace(test.rec); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	p := begin(t, sharing("a"))
	p.admit()
	p.runOn("n")
	p.end(0, Answer{Kind: Answered, Response: &historyv1.ExecuteResponse{State: v1.AttemptMoved, Reason: v1.ReasonNoRoom}})
	p.admit()
	if _, text := p.seeks(); text != "a" {
		t.Errorf("after it was handed back, the run asks for %q", text)
	}
}

// TestLostWorkspaceFailsItsNextTask checks the failure of a task whose workspace is on a node that is gone.
func TestLostWorkspaceFailsItsNextTask(t *testing.T) {
	t.Parallel()
	def := sharing("a", "b")
	def.Tasks["b"].DependsOn = []string{"a"}
	p := begin(t, def)
	p.admit()
	p.runOn("n")
	p.end(0, completed)
	p.admit()
	req, _ := p.seeks()
	p.fly(p.PlaceAnswered(req, &historyv1.PlaceResponse{Epoch: "one", Waiting: []*historyv1.Waiting{{Task: "b", Claim: 1, GivenUp: true, Reason: "no node fits until n is back"}}}, false))
	p.round()
	rec := p.core.Task(1)
	if want := "workspace w is on node n, which task a has used: no node fits until n is back; `switchyard runs retry` runs the tasks of the workspace again"; rec.State != v1.TaskFailed || rec.Reason != v1.ReasonWorkspace || rec.Error != want {
		t.Errorf("the task ends as %+v", rec)
	}
}

// TestRequestsOfAWorkspaceAreTakenBack checks that the next execution may ask for the tasks of a workspace in another order.
func TestRequestsOfAWorkspaceAreTakenBack(t *testing.T) {
	t.Parallel()
	p := begin(t, sharing("a", "b"))
	p.admit()
	p.seeks()
	if _, left := p.TakeBackRequests(); !left || p.UnitOf(0) != nil || p.UnitOf(1) != nil {
		t.Error("requests are left")
	}
}
