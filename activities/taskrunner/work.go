package taskrunner

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/interpreter"
	"switchyard/workflows/policy"
)

// stopGrace is the time between the stop signal and SIGKILL, unless the task sets another one.
const stopGrace = 10 * time.Second

// endingOf returns how the attempt of a request is stopped.
func (n *Node) endingOf(req *historyv1.ExecuteRequest, lease *executor.Lease) executor.Ending {
	return executor.Ending{Signal: req.GetStopSignal(), Grace: cmp.Or(req.GetStopGrace().AsDuration(), stopGrace), EndGrace: n.EndGrace, Lease: lease}
}

// work is the state that the members of one request share while they run one after another, such as a place, a workspace
// and a log.
type work struct {
	node         *Node
	attempt      *attempt
	inputs       *inputs
	gpus         []string
	secrets      secretEnv
	log          taskLog
	checkpointer *checkpointer
	// run is Executor.Run, or the Run of a batch.
	run func(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error)
	// recorded tells the executor of a remote attempt that the server has its answer. It is nil before the attempt has
	// ended.
	recorded func()

	ws *workspace.Workspace
	// spec is the spec of the prepared member.
	spec *structpb.Struct
	// since is when the reattached process started, shifted by the time that it was suspended. It is zero if a new
	// process starts. suspended is set if the reattached process is suspended now.
	since     time.Time
	suspended bool
	// started is when the process started, or zero if it has not.
	started time.Time
}

// id returns the id that marks what a member leaves on the machine.
func (w *work) id(m *member) string {
	return attemptID(w.attempt.req, m)
}

// prepare sets the workspace up for a member. A response means that the member has already failed, because its request
// cannot be resolved.
func (w *work) prepare(ctx context.Context, m *member) (*historyv1.ExecuteResponse, error) {
	req, n := w.attempt.req, w.node
	w.started = time.Time{}
	if failed := w.secrets.failure(); failed != nil {
		return failed, nil
	}
	if failed, err := n.openShared(req); failed != nil || err != nil {
		return failed, err
	}
	spec, env, err := n.templates.render(ctx, req, w.inputs, m)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: v1.ReasonExpression, Error: err.Error(), Result: &v1.TaskResult{ExitCode: -1}}, nil
	}
	command := &structpb.Struct{Fields: map[string]*structpb.Value{"command": spec.GetFields()["command"]}}
	if n.Folders.SharedDir == "" && req.GetTemplates() && v1.NeedsSharedDir(req.GetType(), command, nil) {
		// Placement saw the command before its expressions were evaluated.
		return &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: v1.ReasonBadSpec, Result: &v1.TaskResult{ExitCode: -1}, Error: fmt.Sprintf(
			"the command names $%s, and node %s has no shared folder; add constraints.requiresCapabilities: {%s: \"true\"} to the task", v1.SharedDirVariable, n.Name, v1.SharedDirCapability)}, nil
	}
	if long := interpreter.LongTexts(spec, env); len(long) > 0 {
		return &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: v1.ReasonBadSpec, Result: &v1.TaskResult{ExitCode: -1}, Error: long[0].Error()}, nil
	}
	if failed, err := n.checkApprovedEnvironments(ctx, req, spec); failed != nil || err != nil {
		return failed, err
	}
	w.spec = spec
	if keys := loginKeys(req, spec); keys != "" {
		w.attempt.progress.advance(func(p *historyv1.ExecuteProgress) { p.SshPublicKey = keys })
	}
	checkpoint, err := n.records().loadCheckpoint(ctx, req, m)
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of %s: %w", m.name, err)
	}
	r := workspace.Request{
		RunID: req.GetRunId(), Workflow: req.GetWorkflow(), Task: req.GetTask(), TaskID: req.GetRunId() + "/" + m.name,
		Attempt: int(m.attempt), Node: n.Name, NUMANode: numaNode(req), SharedDir: n.Folders.SharedDir,
		Env: env, Input: w.inputs.input, Checkpoint: checkpoint,
	}
	if hosts := req.GetGang().GetHosts(); len(hosts) > 0 {
		r.Gang = &workspace.Gang{Hosts: hosts, MasterPort: int(req.GetGang().GetMasterPort())}
	}
	if m.index >= 0 {
		r.Index, r.Count, r.Item = int(m.index), int(req.GetCount()), w.inputs.item(m)
	}
	if w.ws == nil {
		w.ws, err = w.root().Prepare(r)
	} else {
		err = w.ws.Next(r)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare the workspace of %s: %w", m.name, err)
	}
	return w.loadArtifacts(ctx)
}

// boundTo returns the NUMA node to which an attempt is bound, or nil.
func (n *Node) boundTo(req *historyv1.ExecuteRequest) *int32 {
	if n.HasNUMA != nil && !n.HasNUMA() {
		return nil
	}
	return req.NumaNode
}

// do runs a prepared member and returns how it ended. An error is a fault of the node.
func (w *work) do(ctx context.Context, m *member) (*historyv1.ExecuteResponse, error) {
	a, req := w.attempt, w.attempt.req
	w.checkpointer.watch(w.ws, m)
	runCtx, limit, cancel := withTimeLimit(ctx, req.GetTimeout().AsDuration(), w.since)
	defer cancel()
	if w.suspended {
		limit.suspend()
	}
	a.steering.begin(w.node.capabilities(req.GetType()), m, w.id(m), limit)
	if !w.started.IsZero() {
		w.beginIdle()
	} else if w.ws.OmitsItem() {
		w.log.Notice("SWITCHYARD_ITEM is not set, because the item is too long for a variable; the file $SWITCHYARD_INPUT has it as item")
	}
	x := executor.Attempt{
		ID: w.id(m), Identity: identityOf(w.node, req, m),
		Spec: w.spec, Env: w.secrets.env(w.ws.Env()),
		Secrets: executor.Secrets{Env: req.GetSecretEnv(), Mask: w.secrets.masks.Text},
		Dirs:    executor.Dirs{Workspace: w.ws.Dir(), Temp: w.ws.TempDir(), Shared: w.node.Folders.SharedDir, Base: cmp.Or(w.filesDir(), w.node.Folders.BaseDir), Files: w.filesDir()},
		Limits:  limits(req.GetResources()),
		Binding: executor.Binding{
			GPUs:     w.gpus,
			GPUPart:  policy.GPUsOf(req.GetResources()).Part,
			NUMANode: w.node.boundTo(req),
			// Placement gives GPUs together with the NUMA node near them, whether or not the task asks for one.
			NUMAOptional: len(req.GetGpus()) > 0 && (req.GetResources() == nil || req.Resources.NumaNode == nil),
		},
		Streams:   executor.Streams{Stdout: w.log.Stream("stdout"), Stderr: w.log.Stream("stderr"), Held: w.log.Held},
		Reports:   executor.Reports{Notify: w.notify, Located: a.located},
		Ending:    w.node.endingOf(req, a.beats.lease),
		Journal:   w.newJournal(m),
		Suspended: w.suspended,
	}
	if a.isRemote() {
		return w.doRemote(runCtx, m, x)
	}
	if a.lasts() {
		var unlink func()
		runCtx, unlink = a.lastingContext(runCtx)
		defer unlink()
	}
	result, err := w.run(runCtx, x, w.spawned)
	a.steering.end()
	a.sessions.idle.end()
	if w.letGoOf(runCtx, result, err) {
		return nil, errLetGo
	}
	w.node.attemptMetrics().countAgent(result.Agent)
	if hasExpired(a.beats.lease, result, err) {
		a.stop(errLeaseLost)
		result.Stopped, err = true, nil
	}
	res, err := interpret(runCtx, result, err)
	if a.isLasting() && res.GetState() == v1.AttemptMoved { // this worker keeps no state, and the task is not placed again
		res.State, res.Reason = v1.TaskLost, v1.ReasonNodeLost
	}
	return w.collect(ctx, runCtx, m, result, res, err)
}

// collect adds what a member has left to its answer. limited ends with the time limit of the member, too. If err is set, it returns the fault of the node instead.
func (w *work) collect(ctx, limited context.Context, m *member, result executor.Result, res *historyv1.ExecuteResponse, err error) (*historyv1.ExecuteResponse, error) {
	if err != nil {
		w.checkpointer.final(ctx, false)
		return nil, fmt.Errorf("run %s: %w", m.name, w.secrets.maskError(err))
	}
	res.Error = w.secrets.masks.Text(res.GetError())
	w.addAgentReport(res, result.Agent)
	if res.GetState() != v1.AttemptMoved {
		w.log.Flush()
		collectStreams(res.GetResult(), w.log.Writer)
		w.collectFiles(res)
		if err := w.saveArtifacts(ctx, limited, m, res); err != nil {
			return stopped(ctx, nil), nil
		}
		explain(res)
	}
	res.Checkpoint = w.checkpointer.final(context.WithoutCancel(ctx), res.GetState() != v1.TaskCompleted)
	return res, nil
}

// notify writes a line to the log of an attempt. An attempt that reports progress before its process starts, such as
// pulling an image, is not stuck, so notify extends its start deadline.
func (w *work) notify(line string) {
	w.log.Notice(line)
	w.attempt.beats.extendStart()
}

// defaultProcesses bounds a container or a sandbox that asks for no other limit.
const defaultProcesses = 4096

// limits returns the limits of an attempt with these resources.
func limits(r *v1.Resources) executor.Limits {
	l := executor.Limits{Cores: 1, Memory: int64(r.GetMemoryMb()) << 20, Processes: int64(r.GetMaxProcesses())}
	if r != nil && r.Cores != nil {
		l.Cores = r.GetCores()
	}
	if l.Processes == 0 {
		l.Processes = defaultProcesses
	}
	return l
}

// root returns the root for the workspace. If the attempt may outlive the worker, its workspace must, too.
func (w *work) root() *workspace.Root {
	n, req := w.node, w.attempt.req
	outlives := n.survivor(req.GetType()) != nil || n.State.Keeps && n.leaver(req.GetType()) != nil && !w.spec.GetFields()["sandbox"].GetBoolValue()
	if len(req.GetBatch()) == 0 && outlives {
		return n.State.workspaces()
	}
	return n.Folders.Workspaces
}

// spawned records that the process of a member has started.
func (w *work) spawned() {
	w.started = time.Now()
	if w.attempt.isRemote() {
		w.attempt.claimFile.start()
	}
	if w.attempt.progress.isWaiting() {
		w.attempt.spawned(w.started)
	} else { // the next member of a batch
		w.attempt.beats.workFrom(w.started)
	}
	w.beginIdle()
}

// beginIdle starts the idle time-out of an attempt of a lasting type when its program runs.
func (w *work) beginIdle() {
	a := w.attempt
	if !a.lasts() {
		return
	}
	a.sessions.idle.begin(idleLimit(w.spec), a.recoveryFile.idleFrom(w.started), a.stop, func(open bool) {
		a.recoveryFile.update(func(k *recoveryState) { k.enter(open) })
	})
}

// timed adds the times of the member's process to an answer.
func (w *work) timed(res *historyv1.ExecuteResponse) *historyv1.ExecuteResponse {
	if !w.started.IsZero() {
		res.StartedAt, res.CompletedAt = timestamppb.New(w.started), timestamppb.Now()
	}
	return res
}

// close releases what is left of the work.
func (w *work) close() {
	if w.checkpointer != nil {
		w.checkpointer.stop() // a panic may have skipped it
	}
	if w.ws == nil {
		return
	}
	if err := w.ws.Close(); err != nil {
		w.node.Logger.Warn("a workspace was not removed", "run", w.attempt.req.GetRunId(), "task", w.attempt.req.GetTask(), "error", err)
	}
}
