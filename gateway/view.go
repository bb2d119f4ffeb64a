package gateway

import (
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// view is what the gateway knows of one run: what its workflow said, merged with
// what only Temporal knows, that an attempt has started. Every change that
// people can see has a version, which only grows. Messages in a view are never
// changed again, only replaced. A view is not safe for concurrent use.
type view struct {
	run   *v1.Run // with context and input, without tasks
	tasks map[string]*taskView
	names []string // of the tasks, sorted
	total int32    // tasks that the run has

	version int64 // of the newest look
	// Versions of the newest change, and of that of context and input.
	newest, contextVersion int64
	// revision is what the workflow's next answer goes on from.
	revision int64
	// running are the attempts that run, by activity id.
	running map[string]runningAttempt
}

// runningAttempt is when the node took up an attempt that runs, and when its
// process started there.
type runningAttempt struct{ assigned, started *timestamppb.Timestamp }

// taskView is one task in a view.
type taskView struct {
	task    *v1.Task // as the workflow knows it, with what it holds of the streams
	brief   *v1.Task // as watchers see it
	claim   int32
	record  string
	version int64
}

func newView(id string) *view {
	workflow, _ := names.WorkflowOfRun(id)
	return &view{run: &v1.Run{Id: id, Name: workflow}, tasks: map[string]*taskView{}}
}

// update takes in what the workflow said, in its order, and which attempts run.
// It costs what has changed and what runs, not what the run holds.
func (v *view) update(answers []*v1.StatusResponse, running map[string]runningAttempt) {
	v.version++
	touched := map[string]bool{}
	for _, a := range answers {
		v.absorb(a, touched)
	}
	for _, attempts := range []map[string]runningAttempt{v.running, running} {
		for id := range attempts {
			if task, _, ok := names.ParseAttemptID(id); ok {
				touched[task] = true
			}
		}
	}
	v.running = running
	for name := range touched {
		t := v.tasks[name]
		if t == nil {
			continue
		}
		if brief := briefOf(name, t, running); !proto.Equal(brief, t.brief) {
			t.brief, t.version, v.newest = brief, v.version, v.version
		}
	}
}

func (v *view) absorb(a *v1.StatusResponse, touched map[string]bool) {
	run := a.GetRun()
	if run.GetGeneration() != v.run.GetGeneration() || a.GetRevision() < v.revision {
		// Another execution under the same id: nothing of the old one holds.
		clear(v.tasks)
		v.names = nil
	}
	v.revision, v.total = a.GetRevision(), a.GetTaskCount()
	header := headerOf(run)
	header.Context, header.Input = v.run.GetContext(), v.run.GetInput()
	if run.GetContext() != nil && !proto.Equal(run.GetContext(), header.Context) {
		header.Context, v.contextVersion = run.GetContext(), v.version
	}
	if run.GetInput() != nil && !proto.Equal(run.GetInput(), header.Input) {
		header.Input, v.contextVersion = run.GetInput(), v.version
	}
	if !proto.Equal(header, v.run) {
		v.run, v.newest = header, v.version
	}
	known := len(v.names)
	for name, task := range run.GetTasks() {
		t := v.tasks[name]
		if t == nil {
			t = &taskView{}
			v.tasks[name] = t
			v.names = append(v.names, name)
		}
		t.task, t.claim, t.record = task, a.GetClaims()[name], a.GetRecords()[name]
		touched[name] = true
	}
	if len(v.names) > known {
		slices.Sort(v.names)
	}
}

// headerOf is a run without tasks, context and input.
func headerOf(run *v1.Run) *v1.Run {
	return &v1.Run{
		Id: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(),
		Error: run.GetError(), CreatedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(),
		Generation: run.GetGeneration(),
	}
}

// briefOf is a task without streams and output, and running if it is.
func briefOf(name string, t *taskView, running map[string]runningAttempt) *v1.Task {
	b := &v1.Task{
		State: t.task.GetState(), Reason: t.task.GetReason(), Type: t.task.GetType(), Node: t.task.GetNode(),
		Attempt: t.task.GetAttempt(), Error: t.task.GetError(), DependsOn: t.task.GetDependsOn(),
		AssignedAt: t.task.GetAssignedAt(), StartedAt: t.task.GetStartedAt(),
		CompletedAt: t.task.GetCompletedAt(), ScheduledAfter: t.task.GetScheduledAfter(),
		Suspicions: t.task.GetSuspicions(),
	}
	if res := t.task.GetResult(); res != nil {
		b.Result = &v1.TaskResult{
			ExitCode: res.GetExitCode(), Signal: res.GetSignal(), CpuSeconds: res.GetCpuSeconds(),
			PeakMemoryMb: res.GetPeakMemoryMb(), StdoutTruncated: res.GetStdoutTruncated(),
			StderrTruncated: res.GetStderrTruncated(),
		}
	}
	if b.State == "assigned" {
		if r, ok := running[names.AttemptID(name, t.claim)]; ok {
			b.State, b.AssignedAt, b.StartedAt = "running", r.assigned, r.started
		}
	}
	return b
}

// runningAttempts are the attempts whose process has been started, by activity
// id, as their heartbeats say.
func runningAttempts(pending []*workflowpb.PendingActivityInfo) map[string]runningAttempt {
	running := map[string]runningAttempt{}
	for _, p := range pending {
		// One that is being cancelled runs until its processes are gone.
		started := p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED || p.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
		if p.GetActivityType().GetName() != names.ExecuteActivity || !started {
			continue
		}
		progress, ok := progressOf(p.GetHeartbeatDetails())
		if !ok || !progress.GetSpawned() && progress.GetStartedAt() == nil {
			continue
		}
		// Of an activity that was tried again, this is the claim that beats.
		if _, claim, ok := names.ParseAttemptID(p.GetActivityId()); !ok || claim != progress.GetClaim() {
			continue
		}
		r := runningAttempt{assigned: p.GetLastStartedTime(), started: progress.GetStartedAt()}
		if r.started == nil {
			r.started = r.assigned
		}
		running[p.GetActivityId()] = r
	}
	return running
}

func progressOf(details *commonpb.Payloads) (*v1.ExecuteProgress, bool) {
	if len(details.GetPayloads()) == 0 {
		return nil, false
	}
	var progress v1.ExecuteProgress
	err := converter.GetDefaultDataConverter().FromPayloads(details, &progress)
	return &progress, err == nil
}

// counts are the tasks by state.
func (v *view) counts() map[string]int32 {
	counts := map[string]int32{}
	for _, t := range v.tasks {
		counts[t.brief.GetState()]++
	}
	return counts
}
