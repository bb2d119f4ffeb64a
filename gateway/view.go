package gateway

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// view is what the gateway knows of one run: what its workflow said, merged with
// what only Temporal knows, that an attempt has started. Every change that
// people can see has a version, which only grows. Messages in a view are never
// changed again, only replaced. A view is not safe for concurrent use.
type view struct {
	run   *v1.Run // with context and input, without tasks
	chain string  // of its executions
	tasks map[string]*taskView
	names []string // of the tasks, sorted
	total int32    // tasks that the run has
	// states are the tasks by state.
	states map[string]int32

	version int64 // of the newest look
	// Versions of the newest change, and of that of context and input.
	newest, contextVersion int64
	// revision is what the workflow's next answer goes on from.
	revision int64
	// running are the attempts that run, by activity id.
	running map[string]runningAttempt
}

// taskView is one task in a view.
type taskView struct {
	task    *v1.Task // as the workflow knows it, with what it holds of the streams; its instances may be old
	brief   *v1.Task // as watchers see it, without instances
	claim   int32
	record  string
	version int64
	// instances are those of a task that has fanned out, by number, as far as the workflow tells; nil: it has
	// not told that one yet.
	instances []*instanceView
}

func newView(id string) *view {
	return &view{run: &v1.Run{Id: id}, tasks: map[string]*taskView{}, states: map[string]int32{}}
}

// home is where the run keeps what it stores.
func (v *view) home() string { return names.Home(v.run.GetId(), v.chain) }

// update takes in what the workflow said, in its order, and which attempts run.
// It costs what has changed and what runs, not what the run holds.
func (v *view) update(answers []*v1.StatusResponse, running map[string]runningAttempt) {
	v.version++
	touched := changes{}
	for _, a := range answers {
		v.absorb(a, touched)
	}
	for _, attempts := range []map[string]runningAttempt{v.running, running} {
		for id := range attempts {
			if name, _, ok := names.ParseAttemptID(id); ok {
				touched.run(v, name)
			}
		}
	}
	v.running = running
	for name, instances := range touched {
		t := v.tasks[name]
		if t == nil {
			continue
		}
		for index := range instances {
			i := t.instance(index)
			if i == nil {
				continue // of an older generation
			}
			if brief := i.shown(t, name, running); !proto.Equal(brief, i.brief) {
				i.brief, i.version = brief, v.version
				t.version, v.newest = v.version, v.version
			}
		}
		if brief := briefOf(name, t, running); !proto.Equal(brief, t.brief) {
			v.recount(t.brief, brief)
			t.brief, t.version, v.newest = brief, v.version, v.version
		}
	}
}

// setProblem shows why the run makes no progress; empty: it does.
func (v *view) setProblem(problem string) {
	if v.run.GetProblem() == problem {
		return
	}
	header := headerOf(v.run)
	header.Context, header.Input, header.Problem = v.run.GetContext(), v.run.GetInput(), problem
	v.version++
	v.run, v.newest = header, v.version
}

// changes are the tasks that may look different, each with the numbers of its instances that may.
type changes map[string]map[int]bool

func (c changes) task(name string) {
	if c[name] == nil {
		c[name] = map[int]bool{}
	}
}

// run notes what the start or the end of an attempt changes: of a task, of an instance, or of a batch, which has the
// name of its first instance.
func (c changes) run(v *view, name string) {
	task, index, ok := names.ParseInstanceName(name)
	if !ok {
		c.task(name)
		return
	}
	c.task(task)
	t := v.tasks[task]
	if t == nil || t.instance(index) == nil {
		return
	}
	c[task][index] = true
	if t.instances[index].instance.Lead != nil {
		c.batches(task, t, map[int]bool{index: true})
	}
}

// batches notes the instances of the batches with these first instances: which of them runs hangs on the others.
func (c changes) batches(task string, t *taskView, leads map[int]bool) {
	if len(leads) == 0 {
		return
	}
	for k, i := range t.instances {
		if i != nil && i.instance.Lead != nil && leads[int(i.instance.GetLead())] {
			c[task][k] = true
		}
	}
}

func (v *view) absorb(a *v1.StatusResponse, touched changes) {
	run := a.GetRun()
	if run.GetGeneration() != v.run.GetGeneration() || a.GetRevision() < v.revision {
		// Another execution under the same id: nothing of the old one holds.
		clear(v.tasks)
		clear(v.states)
		v.names = nil
	}
	v.chain = a.GetChain()
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
		touched.task(name)
		leads := map[int]bool{}
		for _, i := range task.GetInstances() {
			index := int(i.GetIndex())
			if before := t.instance(index); before != nil && before.instance.Lead != nil {
				leads[int(before.instance.GetLead())] = true
			}
			t.learn(i, a.GetClaims(), a.GetRecords(), name)
			touched[name][index], leads[index] = true, true
			if i.Lead != nil {
				leads[int(i.GetLead())] = true
			}
		}
		touched.batches(name, t, leads)
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
		Generation: run.GetGeneration(), Problem: run.GetProblem(), SubmittedBy: run.GetSubmittedBy(), Batch: run.GetBatch(),
	}
}

// briefOf is a task without streams, output and instances, and running if it is.
func briefOf(name string, t *taskView, running map[string]runningAttempt) *v1.Task {
	b := &v1.Task{
		State: t.task.GetState(), Reason: t.task.GetReason(), Type: t.task.GetType(), Node: t.task.GetNode(),
		Attempt: t.task.GetAttempt(), Error: t.task.GetError(), DependsOn: t.task.GetDependsOn(),
		AssignedAt: t.task.GetAssignedAt(), StartedAt: t.task.GetStartedAt(),
		CompletedAt: t.task.GetCompletedAt(), ScheduledAfter: t.task.GetScheduledAfter(),
		Suspicions: t.task.GetSuspicions(), Result: briefResult(t.task.GetResult()),
		Count: t.task.Count, Counts: t.counts(name, running), CachedFrom: t.task.GetCachedFrom(),
		ChildRun: t.task.GetChildRun(), Held: t.task.GetHeld(), QueuedAt: t.task.GetQueuedAt(),
	}
	if r, ok := running[names.AttemptID(name, t.claim)]; ok && mayRun(b.State) {
		b.State, b.AssignedAt, b.StartedAt = shownRunning(b.State), r.assigned, r.started
	}
	return b
}

// mayRun says whether the process of a task may have been started that the workflow shows in a state. One that it
// shows as paused has been, unless it waits for an approval.
func mayRun(state string) bool { return state == v1.TaskAssigned || state == v1.TaskPaused }

// shownRunning is what a task is shown as whose process has been started.
func shownRunning(state string) string {
	if state == v1.TaskPaused {
		return state
	}
	return v1.TaskRunning
}

// briefResult is a result without streams and output.
func briefResult(res *v1.TaskResult) *v1.TaskResult {
	if res == nil {
		return nil
	}
	return &v1.TaskResult{
		ExitCode: res.GetExitCode(), Signal: res.GetSignal(), CpuSeconds: res.GetCpuSeconds(),
		PeakMemoryMb: res.GetPeakMemoryMb(), StdoutTruncated: res.GetStdoutTruncated(),
		StderrTruncated: res.GetStderrTruncated(),
	}
}

// recount counts a task by its state, and no more by that of what was shown of it; nil: nothing was.
func (v *view) recount(was, is *v1.Task) {
	if was != nil {
		if v.states[was.GetState()]--; v.states[was.GetState()] == 0 {
			delete(v.states, was.GetState())
		}
	}
	v.states[is.GetState()]++
}

// counts are the tasks by state.
func (v *view) counts() map[string]int32 { return maps.Clone(v.states) }
