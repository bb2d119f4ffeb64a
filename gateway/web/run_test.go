package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/dev/servicetest"
	"switchyard/gateway/auth"
	"switchyard/gateway/web/live"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// operator is a caller that may see all runs.
var operator = &auth.Principal{Name: "op", Role: v1.Role_ROLE_OPERATOR}

// after returns the time some seconds after the start of a test run, which started a minute before testNow.
func after(seconds int) *timestamppb.Timestamp {
	return timestamppb.New(testNow.Add(-time.Minute + time.Duration(seconds)*time.Second))
}

// serveRun makes the services return a run and stream the messages sent to the returned channel.
func serveRun(f *servicetest.Fake, full *v1.Run) chan<- *v1.WatchRunResponse {
	messages := make(chan *v1.WatchRunResponse, 10)
	servicetest.AnswerStream(f, switchyardv1connect.RunServiceWatchRunProcedure, func(ctx context.Context, _ *v1.WatchRunRequest, send func(*v1.WatchRunResponse) error) error {
		for {
			select {
			case m, ok := <-messages:
				if !ok {
					return nil
				}
				if err := send(m); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceGetRunProcedure, &v1.GetRunResponse{Run: full})
	return messages
}

// exampleRun returns a run with tasks in several states.
func exampleRun() *v1.Run {
	return &v1.Run{Id: "nightly-1", Name: "nightly", State: v1.RunRunning, CreatedAt: after(0), Tasks: map[string]*v1.Task{
		"fetch": {State: v1.TaskCompleted, Type: "shell", Node: "a", AssignedAt: after(1), StartedAt: after(1), CompletedAt: after(5)},
		"flaky": {State: v1.TaskRunning, Type: "shell", Node: "a", Attempt: 1, AssignedAt: after(20), StartedAt: after(20), DependsOn: []string{"fetch"}},
		"train": {State: v1.TaskQueued, Type: "shell", Error: "0 of 2 nodes have 2 free GPUs", DependsOn: []string{"fetch"}, QueuedAt: after(5)},
		"later": {State: v1.TaskPending, Type: "shell", DependsOn: []string{"flaky", "train"}},
	}}
}

func TestRunShowsGraphBesideTimeline(t *testing.T) {
	f, full := &servicetest.Fake{}, exampleRun()
	full.Tasks["flaky"].Attempts = []*v1.Attempt{{State: v1.TaskFailed, Node: "a", AssignedAt: after(6), StartedAt: after(6), CompletedAt: after(10)}}
	serveRun(f, full) <- &v1.WatchRunResponse{Run: exampleRun(), TaskCount: 4}
	page := newVisitor(t, f, v1.RoleViewer).get("/ui/runs/nightly-1")
	for _, task := range []string{"fetch", "flaky", "train", "later"} {
		mustContain(t, page.text("#n-"+task), task)
		mustContain(t, page.text("#t-"+task), task)
		if len(page.all(`#t-`+task+` a[href="/ui/runs/nightly-1/tasks/`+task+`"]`)) != 1 {
			t.Errorf("the lane of %s does not lead to it", task)
		}
	}
	mustContain(t, page.text("#run-counts"), "4 tasks", "1 completed", "1 running", "1 queued", "1 pending")
	if len(page.all("#t-train .r-node")) != 1 || !strings.Contains(page.text("#t-train"), "0 of 2 nodes have 2 free GPUs") {
		t.Errorf("the wait of train: %s", page.text("#t-train"))
	}
	if len(page.all("#t-flaky .k-run-failed")) != 1 || page.text("#t-flaky .retry") != "✗0" {
		t.Errorf("the attempts of flaky: %s", page.text("#t-flaky"))
	}
	if got := page.all("#run-head button[disabled]"); len(got) != 2 {
		t.Errorf("a viewer finds %d buttons disabled: %s", len(got), page.text("#run-head"))
	}
	mustBeHarmless(t, page)
}

func TestRunShowsDefinedTasksBeforeTheyAreReported(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceGetRunDefinitionProcedure, &v1.GetRunDefinitionResponse{Definition: &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"fetch": {Type: "shell"}, "build": {Type: "shell", DependsOn: []string{"fetch"}},
	}}})
	serveRun(f, nil) <- &v1.WatchRunResponse{Run: &v1.Run{Id: "nightly-1", State: v1.RunPending, CreatedAt: after(0)}, TaskCount: 2}
	page := newVisitor(t, f, v1.RoleViewer).get("/ui/runs/nightly-1")
	mustContain(t, page.text("#lanes"), "fetch", "build", "pending")
}

// TestRunSendsOnlyWhatHasChanged ends one task of a watched run and checks the update.
func TestRunSendsOnlyWhatHasChanged(t *testing.T) { patiently(t, runSendsOnlyWhatHasChanged) }

func runSendsOnlyWhatHasChanged(t *testing.T) {
	f := &servicetest.Fake{}
	messages := serveRun(f, exampleRun())
	messages <- &v1.WatchRunResponse{Run: exampleRun(), TaskCount: 4}
	feeds := live.NewFeeds()
	t.Cleanup(feeds.Close)
	w := New(newVisitorConfig(t, f, feeds))
	req := request{path: "/ui/runs/nightly-1", values: map[string]string{"run": "nightly-1"}, query: map[string][]string{}, caller: operator}
	opener := w.opener(view{open: openRun}, req)
	_, version, err := feeds.Load(t.Context(), req.key(), opener)
	if err != nil {
		t.Fatal(err)
	}
	ended := exampleRun().Tasks["flaky"]
	ended.State, ended.CompletedAt = v1.TaskCompleted, after(40)
	messages <- &v1.WatchRunResponse{Run: &v1.Run{Id: "nightly-1", Name: "nightly", State: v1.RunRunning, CreatedAt: after(0), Tasks: map[string]*v1.Task{"flaky": ended}}, TaskCount: 4}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var update string
	_ = feeds.Follow(ctx, req.key(), opener, version, func(text []byte) error {
		update = string(text)
		return context.Canceled
	})
	mustContain(t, update, `"n-flaky"`, `"t-flaky"`, `"run-counts"`)
	mustNotContain(t, update, `"n-fetch"`, `"t-fetch"`, `"t-train"`, `"run-head"`, `"lanes"`, `"shape"`)
}

func TestLargeFanOutIsDrawnAsAStrip(t *testing.T) {
	f, run := &servicetest.Fake{}, exampleRun()
	many := &v1.Task{State: v1.TaskRunning, Type: "shell", Count: proto.Int32(10_000), Counts: map[string]int32{v1.TaskCompleted: 9_000, v1.TaskQueued: 1_000}}
	for i := range int32(10_000) {
		one := &v1.Instance{Index: i, State: v1.TaskQueued, QueuedAt: after(5)}
		if i < 9_000 {
			one = &v1.Instance{Index: i, State: v1.TaskCompleted, Node: "a", AssignedAt: after(6), StartedAt: after(6), CompletedAt: after(7 + int(i)/300)}
		}
		many.Instances = append(many.Instances, one)
	}
	run.Tasks["many"] = many
	serveRun(f, run) <- &v1.WatchRunResponse{Run: run, TaskCount: 5}
	page := newVisitor(t, f, v1.RoleViewer).get("/ui/runs/nightly-1")
	mustContain(t, page.text("#t-many"), "many", "9000/10000 done")
	if len(page.all("#t-many .strip")) != 1 || len(page.body) > 60<<10 {
		t.Errorf("%d strips, %d bytes", len(page.all("#t-many .strip")), len(page.body))
	}
}

func TestRunOfManyTasksDrawsThoseOfInterest(t *testing.T) {
	f, run := &servicetest.Fake{}, &v1.Run{Id: "nightly-1", State: v1.RunFailed, CreatedAt: after(0), CompletedAt: after(50), Tasks: map[string]*v1.Task{}}
	for i := range 2000 {
		run.Tasks[fmt.Sprintf("task-%04d", i)] = &v1.Task{State: v1.TaskCompleted, AssignedAt: after(1), StartedAt: after(1), CompletedAt: after(2)}
	}
	run.Tasks["task-1999"].State = v1.TaskFailed
	messages := serveRun(f, run)
	messages <- &v1.WatchRunResponse{Run: run, TaskCount: 2000}
	v := newVisitor(t, f, v1.RoleViewer)
	page := v.get("/ui/runs/nightly-1")
	mustContain(t, page.text("#lanes"), "task-1999")
	mustContain(t, page.text("#run-hidden"), "1700 tasks")
	if got := len(page.all("#lanes div")); got != maxDrawn {
		t.Errorf("%d lanes", got)
	}
}

func TestReportOfRunIsOneFile(t *testing.T) {
	f, run := &servicetest.Fake{}, exampleRun()
	run.State, run.CompletedAt = v1.RunFailed, after(50)
	run.Tasks["flaky"].State, run.Tasks["flaky"].Error, run.Tasks["flaky"].CompletedAt = v1.TaskFailed, "exit code 3", after(40)
	run.Tasks["fetch"].Result = &v1.TaskResult{Artifacts: []*v1.Artifact{{Name: "app", Size: 5, Files: 1}}}
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceGetRunProcedure, &v1.GetRunResponse{Run: run})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunLogsProcedure, &v1.ListRunLogsResponse{Items: []*v1.LogLine{{Text: "cannot reach the mirror"}}})
	a := newVisitor(t, f, v1.RoleViewer).get("/ui/runs/nightly-1/report")
	mustContain(t, a.header.Get("Content-Disposition"), "attachment", "nightly-1.html")
	mustContain(t, textOf(a.doc), "nightly-1", "exit code 3", "cannot reach the mirror", "fetch", "later")
	mustNotContain(t, a.body, "<script", "<link", "src=")
	if got := a.link("app"); got != "https://yard.example.com/ui/runs/nightly-1/tasks/fetch/artifacts/app" {
		t.Errorf("the artifact is at %q", got)
	}
}
