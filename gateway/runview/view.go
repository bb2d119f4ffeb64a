package runview

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// View is the state of one run as the gateway sees it. It merges the reports of the workflow with the starts of attempts,
// which only Temporal has. Every visible change gets a version, and versions only grow. Messages in a view are replaced,
// never changed. A View is not safe for concurrent use.
type View struct {
	Run   *v1.Run // with context and input, without tasks
	chain string  // of the run's executions
	Tasks map[string]*TaskView
	Names []string // task names, sorted
	total int32    // number of tasks of the run
	// states counts the tasks by state, and instanceStates the instances of fanned-out tasks.
	states, instanceStates map[string]int32

	version int64 // version of the newest update
	// newest is the version of the last change, and contextVersion that of the last change of context or input.
	newest, contextVersion int64
	// revision is the revision after which the workflow's next response continues.
	revision int64
	// Running holds the running attempts, by activity id.
	Running map[string]RunningAttempt

	completed completedInstances
}

// TaskView is one task in a view.
type TaskView struct {
	Task   *v1.Task // as the workflow reports it, with its part of the streams; its instances may be stale
	Brief  *v1.Task // as watchers see it, without instances
	Claim  int32
	Record string
	// LeaseUntil is when the lease of the running attempt expires, or nil. It is not a part of Brief, because each heartbeat
	// changes it.
	LeaseUntil *timestamppb.Timestamp
	version    int64
	// Instances holds the instances of a fanned-out task, by number, with nil for those that the workflow has not reported
	// yet.
	Instances []*InstanceView
}

// NewView returns an empty view of a run.
func NewView(id string) *View {
	return &View{Run: &v1.Run{Id: id}, Tasks: map[string]*TaskView{}, states: map[string]int32{}, instanceStates: map[string]int32{}}
}

// Home returns the prefix of the run's keys in the store.
func (v *View) Home() string { return names.Home(v.Run.GetId(), v.chain) }

// Update applies responses of the workflow, in order, and the set of running attempts. Its cost depends on the changes and
// the running attempts, not on the size of the run.
func (v *View) Update(answers []*historyv1.StatusResponse, running map[string]RunningAttempt) {
	v.version++
	touched := changes{}
	for _, a := range answers {
		v.apply(a, touched)
	}
	for _, attempts := range []map[string]RunningAttempt{v.Running, running} {
		for id := range attempts {
			if name, _, ok := names.ParseAttemptID(id); ok {
				touched.markAttempt(v, name)
			}
		}
	}
	v.Running = running
	for name, instances := range touched {
		t := v.Tasks[name]
		if t == nil {
			continue
		}
		for index := range instances {
			i := t.instance(index)
			if i == nil {
				continue // belongs to an older generation
			}
			before := i.Brief
			i.show(t, name, running)
			if !proto.Equal(before, i.Brief) {
				i.version, t.version, v.newest = v.version, v.version, v.version
			}
		}
		r, _ := t.findAttempt(name, running)
		t.LeaseUntil = r.leaseUntil
		if brief := briefOf(name, t, running); !proto.Equal(brief, t.Brief) {
			v.recount(t.Brief, brief)
			t.Brief, t.version, v.newest = brief, v.version, v.version
		}
	}
}

// setProblem sets why the run makes no progress, or "" if there is no problem.
func (v *View) setProblem(problem string) {
	if v.Run.GetProblem() == problem {
		return
	}
	header := headerOf(v.Run)
	header.Context, header.Input, header.Problem = v.Run.GetContext(), v.Run.GetInput(), problem
	v.version++
	v.Run, v.newest = header, v.version
}

// changes maps the tasks that may have changed visibly to the numbers of the instances that may have.
type changes map[string]map[int]bool

func (c changes) markTask(name string) {
	if c[name] == nil {
		c[name] = map[int]bool{}
	}
}

// markAttempt records the effect of an attempt's start or end: on a task, an instance, or a batch, which has the name of its
// first instance.
func (c changes) markAttempt(v *View, name string) {
	task, index, ok := names.ParseInstanceName(name)
	if !ok {
		c.markTask(name)
		return
	}
	c.markTask(task)
	t := v.Tasks[task]
	if t == nil || t.instance(index) == nil {
		return
	}
	c[task][index] = true
	if t.Instances[index].Instance.Lead != nil {
		c.markBatches(task, t, map[int]bool{index: true})
	}
}

// markBatches records the instances of the batches with the given first instances: which of them is running depends on the
// others.
func (c changes) markBatches(task string, t *TaskView, leads map[int]bool) {
	if len(leads) == 0 {
		return
	}
	for k, i := range t.Instances {
		if i != nil && i.Instance.Lead != nil && leads[int(i.Instance.GetLead())] {
			c[task][k] = true
		}
	}
}

func (v *View) apply(a *historyv1.StatusResponse, touched changes) {
	run := a.GetRun()
	if run.GetGeneration() != v.Run.GetGeneration() || a.GetRevision() < v.revision {
		// Another execution under the same id invalidates everything in the view.
		clear(v.Tasks)
		clear(v.states)
		clear(v.instanceStates)
		v.Names = nil
	}
	v.chain = a.GetChain()
	v.revision, v.total = a.GetRevision(), a.GetTaskCount()
	header := headerOf(run)
	header.Context, header.Input = v.Run.GetContext(), v.Run.GetInput()
	if run.GetContext() != nil && !proto.Equal(run.GetContext(), header.Context) {
		header.Context, v.contextVersion = run.GetContext(), v.version
	}
	if run.GetInput() != nil && !proto.Equal(run.GetInput(), header.Input) {
		header.Input, v.contextVersion = run.GetInput(), v.version
	}
	if !proto.Equal(header, v.Run) {
		v.Run, v.newest = header, v.version
	}
	known := len(v.Names)
	for name, task := range run.GetTasks() {
		t := v.Tasks[name]
		if t == nil {
			t = &TaskView{}
			v.Tasks[name] = t
			v.Names = append(v.Names, name)
		}
		t.Task, t.Claim, t.Record = task, a.GetClaims()[name], a.GetRecords()[name]
		touched.markTask(name)
		leads := map[int]bool{}
		for _, i := range task.GetInstances() {
			index := int(i.GetIndex())
			if before := t.instance(index); before != nil && before.Instance.Lead != nil {
				leads[int(before.Instance.GetLead())] = true
			}
			t.updateInstance(i, a.GetClaims(), a.GetRecords(), name)
			touched[name][index], leads[index] = true, true
			if i.Lead != nil {
				leads[int(i.GetLead())] = true
			}
		}
		touched.markBatches(name, t, leads)
	}
	if len(v.Names) > known {
		slices.Sort(v.Names)
	}
}

// headerOf returns a copy of a run without tasks, context and input.
func headerOf(run *v1.Run) *v1.Run {
	return &v1.Run{
		Id: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(),
		Error: run.GetError(), CreatedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(),
		Generation: run.GetGeneration(), Problem: run.GetProblem(), SubmittedBy: run.GetSubmittedBy(), Batch: run.GetBatch(), Approval: run.GetApproval(), Source: run.GetSource(),
		Trigger: run.GetTrigger(), Parent: run.GetParent(), TaskCounts: run.GetTaskCounts(), InstanceCounts: run.GetInstanceCounts(),
		IdempotencyKey: run.GetIdempotencyKey(), LateSince: run.GetLateSince(),
	}
}

// briefOf returns a copy of a task without streams, output and instances. Its state is running if its process has started.
func briefOf(name string, t *TaskView, running map[string]RunningAttempt) *v1.Task {
	b := &v1.Task{
		State: t.Task.GetState(), Reason: t.Task.GetReason(), Type: t.Task.GetType(), Node: t.Task.GetNode(),
		Attempt: t.Task.GetAttempt(), Error: t.Task.GetError(), DependsOn: t.Task.GetDependsOn(),
		AssignedAt: t.Task.GetAssignedAt(), StartedAt: t.Task.GetStartedAt(),
		CompletedAt: t.Task.GetCompletedAt(), ScheduledAfter: t.Task.GetScheduledAfter(),
		Suspicions: t.Task.GetSuspicions(), Result: briefResult(t.Task.GetResult()),
		Count: t.Task.Count, Counts: t.counts(name, running), CachedFrom: t.Task.GetCachedFrom(),
		ChildRun: t.Task.GetChildRun(), Held: t.Task.GetHeld(), QueuedAt: t.Task.GetQueuedAt(), LateSince: t.Task.GetLateSince(), Notice: cmp.Or(t.Task.GetNotice(), t.instanceNotice(name)),
		Finally: t.Task.GetFinally(),
	}
	if r, ok := t.findAttempt(name, running); ok {
		b.State, b.AssignedAt, b.StartedAt, b.Notice, b.Workload = shownRunning(b.State), r.assigned, r.Started, r.notice(b.Node), r.workload
	}
	return b
}

// findAttempt returns the running attempt of a task, and reports whether there is one.
func (t *TaskView) findAttempt(name string, running map[string]RunningAttempt) (RunningAttempt, bool) {
	if !mayRun(t.Task.GetState()) {
		return RunningAttempt{}, false
	}
	r, ok := running[names.AttemptID(name, t.Claim)]
	return r, ok
}

// mayRun reports whether a task in the given state, as the workflow reports it, may have a running process. A paused task
// has one unless it waits for an approval.
func mayRun(state string) bool { return state == v1.TaskAssigned || state == v1.TaskPaused }

// shownRunning returns the state in which a task with a running process is shown.
func shownRunning(state string) string {
	if state == v1.TaskPaused {
		return state
	}
	return v1.TaskRunning
}

// briefResult returns a copy of a result without streams and output.
func briefResult(res *v1.TaskResult) *v1.TaskResult {
	if res == nil {
		return nil
	}
	return &v1.TaskResult{
		ExitCode: res.GetExitCode(), Signal: res.GetSignal(), CpuSeconds: res.GetCpuSeconds(),
		PeakMemoryMb: res.GetPeakMemoryMb(), StdoutTruncated: res.GetStdoutTruncated(),
		StderrTruncated: res.GetStderrTruncated(), Agent: res.GetAgent(), Warning: res.GetWarning(),
		Artifacts: ShownArtifacts(res),
	}
}

// ShownArtifacts returns copies of the artifacts of a result as clients see them, without their keys in the store.
func ShownArtifacts(res *v1.TaskResult) []*v1.Artifact {
	var shown []*v1.Artifact
	for _, a := range res.GetArtifacts() {
		a = proto.CloneOf(a)
		a.Manifest = ""
		shown = append(shown, a)
	}
	return shown
}

// recount replaces the states of a task and its instances in the counts. was is nil if the task is new.
func (v *View) recount(was, is *v1.Task) {
	if was != nil {
		addCount(v.states, was.GetState(), -1)
	}
	addCount(v.states, is.GetState(), 1)
	for state, n := range was.GetCounts() {
		addCount(v.instanceStates, state, -n)
	}
	for state, n := range is.GetCounts() {
		addCount(v.instanceStates, state, n)
	}
}

// addCount adds n to the count of a state, and removes a count that becomes 0.
func addCount(counts map[string]int32, state string, n int32) {
	if counts[state] += n; counts[state] == 0 {
		delete(counts, state)
	}
}

// Header returns a copy of the run without tasks, context and input, with its counts.
func (v *View) Header() *v1.Run {
	run := headerOf(v.Run)
	run.TaskCounts, run.InstanceCounts = maps.Clone(v.states), maps.Clone(v.instanceStates)
	return run
}

// DeadLetteredAt returns when a task or instance was dead-lettered, or nil if it is not a dead letter.
func DeadLetteredAt(of interface {
	GetState() string
	GetCompletedAt() *timestamppb.Timestamp
}) *timestamppb.Timestamp {
	if of.GetState() != v1.TaskDeadLetter {
		return nil
	}
	return of.GetCompletedAt()
}

// HasPartitions reports whether children of the run hold the instances of a task.
func (v *View) HasPartitions() bool {
	for _, t := range v.Tasks {
		if t.Task.GetCount() > 0 && len(t.Instances) == 0 {
			return true
		}
	}
	return false
}

// HasBegun reports whether a task could start in any generation of its run.
func HasBegun(task *v1.Task) bool {
	return task.GetQueuedAt() != nil || task.GetStartedAt() != nil || task.GetCount() > 0 || len(task.GetAttempts()) > 0
}
