package flight

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// Record is what a run remembers about a task or an instance, beside the record of the core, to decide about it.
type Record struct {
	ReadyAt        time.Time // when it could first start; zero if unknown
	LateSince      time.Time // since when it has been late; zero if it is not
	QueuedAt       time.Time // when its newest attempt began to wait for a node; zero if it has not
	Avoid          string    // node of the newest dispatch that failed or that the node handed back, or ""
	Refusals       int32     // consecutive refusals by nodes without room
	LostLeases     int32     // leases lost on live nodes since an attempt ended in another way
	Suspicions     int32     // dispatches in a row that a node did not start
	Requeues       int32     // how often it was requeued after its end; only what runs outside the nodes is counted
	Continues      bool      // an earlier dispatch started its newest attempt, which runs outside the nodes
	Unacknowledged []int32   // numbers of the attempts whose end is unknown
	Left           []string  // keys of records that attempts of earlier generations may have left
	// Checkpoint is what the newest attempt left for the next one, or nil if nothing.
	Checkpoint *historyv1.Checkpoint
	ResultKey  string // key of the stored record with the whole result, or "" if Result returns all of it
	result     *v1.TaskResult

	Held      bool             // by a person
	HeldBy    string           // who holds it, and why, or "" if unknown
	Suspended string           // who suspended it, and why, or ""
	Silent    string           // what delays its attempt while nothing comes from its node, or ""
	Away      string           // why it is lost until its node is back, or ""
	AwayAt    time.Time        // since when; zero if it is not away
	Wait      string           // why it waits for its lock, its node or a child workflow, or ""
	Lock      string           // name of its lock, if an expression gave it
	CacheKey  string           // key under which its result will be cached
	Uncached  string           // why its result will not be cached although its definition has a cache
	Items     *historyv1.Items // evaluated list of a foreach; nil if the definition holds the list
	// Counts holds how many of its instances are in each state, as people see it, if other workflows run them; otherwise nil.
	Counts map[string]int32
	// LeftOn holds the nodes of its attempts in other workflows, if it was cancelled and nothing but these is left of it.
	LeftOn []string
	// CachedFrom is the run whose result it has reused, and ChildRun the newest run that it has started, or "".
	CachedFrom, ChildRun string
	// Reopenings is how often it has begun anew after its end, in this execution.
	Reopenings int32
	// FanOut is what other tasks see of its instances, or nil until it has ended and the first of them asks.
	FanOut *historyv1.FanOutView

	hasEnded bool
}

// Records holds the records of tasks and instances, under the indices of the core. A task without a record has an empty one.
type Records struct {
	list []*Record
	// suspicionLimit is how many suspicions in a row it takes until a task avoids the last node.
	suspicionLimit int32
}

// NewRecords returns the records of a run that is about to begin.
func NewRecords(options *v1.RunOptions) *Records {
	return &Records{suspicionLimit: max(1, options.GetSuspicionLimit())}
}

// Of returns the record of task i.
func (rs *Records) Of(i int) Record {
	if i >= len(rs.list) || rs.list[i] == nil {
		return Record{}
	}
	return *rs.list[i]
}

// At returns the record of task i, for modification.
func (rs *Records) At(i int) *Record {
	if i >= len(rs.list) {
		rs.list = append(rs.list, make([]*Record, i+1-len(rs.list))...)
	}
	if rs.list[i] == nil {
		rs.list[i] = &Record{}
	}
	return rs.list[i]
}

// ItemsOf returns the foreach list of a task with a definition, evaluated or from the definition, or nil if it has none.
func (rs *Records) ItemsOf(i int, def *v1.TaskDefinition) *historyv1.Items {
	list := def.GetForeach().GetListValue()
	if items := rs.Of(i).Items; items != nil || list == nil {
		return items
	}
	return &historyv1.Items{List: list}
}

// Queue records when a task began to wait for a node. A claim that is placed again keeps its time.
func (r *Record) Queue(now time.Time) {
	if r.QueuedAt.IsZero() {
		r.QueuedAt = now
	}
}

// Ended records the end of a dispatch.
func (rs *Records) Ended(end End) {
	r := rs.At(end.Ended.Task)
	r.Avoid = ""
	isMoved, isSuspect := end.Ended.State == v1.AttemptMoved, end.IsSuspect()
	switch {
	case isSuspect:
		r.Suspicions++
	case end.Outcome == v1.OutcomeDone:
		r.Suspicions = 0
	}
	isTolerated := isSuspect && r.Suspicions < rs.suspicionLimit
	if end.Outcome != v1.OutcomeDone && end.Outcome != "" && !isTolerated {
		r.Avoid = end.Node
	}
	if r.Refusals++; end.Outcome != v1.OutcomeRefused {
		r.Refusals = 0
	}
	if end.Unacknowledged && !slices.Contains(r.Unacknowledged, end.Attempt) {
		r.Unacknowledged = append(slices.Clip(r.Unacknowledged), end.Attempt)
	}
	switch {
	case end.Ended.State == v1.TaskCompleted:
		r.Checkpoint = nil
	case end.Checkpoint != nil:
		r.Checkpoint = end.Checkpoint
	}
	switch {
	case !isMoved:
		r.Continues, r.LostLeases = false, 0
		r.SetResult(end.Response)
		return
	case end.Continues:
		r.Continues = true
	}
	if end.Ended.Reason == v1.ReasonLeaseLost {
		r.LostLeases++
	}
}

// Changed records that task i has changed in the core. A task that was requeued after its end, or waits for one that was, begins
// anew. isRemote reports whether it runs outside the nodes, isGroup whether it runs as instances.
func (rs *Records) Changed(i int, rec dag.Record, isRemote, isGroup bool) {
	if i < len(rs.list) && rs.list[i] != nil {
		rs.list[i].Wait = ""
	}
	hadEnded, hasEnded := rs.Of(i).hasEnded, v1.IsTaskTerminal(rec.State)
	if hasEnded && isGroup {
		rs.At(i).result = &v1.TaskResult{ExitCode: rec.ExitCode, Output: NothingRan.Output}
	}
	if hadEnded == hasEnded {
		return
	}
	r := rs.At(i)
	r.hasEnded = hasEnded
	if hasEnded {
		return
	}
	r.Reopenings++
	if isRemote {
		r.Requeues++
	}
	r.ReadyAt, r.QueuedAt, r.Refusals, r.LostLeases, r.Continues = time.Time{}, time.Time{}, 0, 0, false
	r.Lock, r.CacheKey, r.Uncached, r.FanOut, r.CachedFrom, r.ChildRun = "", "", "", nil, "", ""
}

// save writes the record of task i to the state from which the next execution restores it.
func (rs *Records) save(i int, t *historyv1.TaskState) {
	r := rs.Of(i)
	result := r.Result()
	if r.ResultKey != "" {
		result = &v1.TaskResult{
			ExitCode: result.GetExitCode(), Signal: result.GetSignal(), CpuSeconds: result.GetCpuSeconds(),
			PeakMemoryMb: result.GetPeakMemoryMb(), StdoutTruncated: true, StderrTruncated: true,
			Agent: result.GetAgent(), Warning: result.GetWarning(), Artifacts: result.GetArtifacts(),
		}
	}
	t.Task.Result, t.Task.Suspicions = result, r.Suspicions
	t.Record, t.Unacknowledged, t.AvoidNode, t.Refusals, t.LostLeases = r.ResultKey, r.Unacknowledged, r.Avoid, r.Refusals, r.LostLeases
	t.Requeues, t.Continues, t.LeftRecords, t.Checkpoint = r.Requeues, r.Continues, r.Left, r.Checkpoint
	t.Paused, t.Lock, t.CacheKey, t.Items = r.Suspended, r.Lock, r.CacheKey, r.Items
	t.Task.CachedFrom, t.Task.ChildRun = r.CachedFrom, r.ChildRun
	if t.Away = r.Away; r.Away != "" {
		t.Task.CompletedAt = timestamppb.New(r.AwayAt)
	}
	if !r.ReadyAt.IsZero() {
		t.ReadyAt = timestamppb.New(r.ReadyAt)
	}
	if !r.QueuedAt.IsZero() {
		t.Task.QueuedAt = timestamppb.New(r.QueuedAt)
	}
	if !r.LateSince.IsZero() {
		t.Task.LateSince = timestamppb.New(r.LateSince)
	}
}

// Restore restores the record that the previous execution left of task i. Only a task that hasInstances keeps its list.
func (rs *Records) Restore(i int, t *historyv1.TaskState, hasInstances bool) {
	task, r := t.GetTask(), rs.At(i)
	*r = Record{
		Avoid: t.GetAvoidNode(), Refusals: t.GetRefusals(), LostLeases: t.GetLostLeases(), Suspicions: task.GetSuspicions(),
		Requeues: t.GetRequeues(), Continues: t.GetContinues(), Unacknowledged: t.GetUnacknowledged(), Left: t.GetLeftRecords(),
		Checkpoint: t.GetCheckpoint(), ResultKey: t.GetRecord(), result: task.GetResult(), Suspended: t.GetPaused(), Lock: t.GetLock(), CacheKey: t.GetCacheKey(),
		CachedFrom: task.GetCachedFrom(), ChildRun: task.GetChildRun(), Away: t.GetAway(), hasEnded: v1.IsTaskTerminal(task.GetState()),
	}
	if r.Away != "" {
		r.AwayAt = task.GetCompletedAt().AsTime()
	}
	if hasInstances {
		r.Items = t.GetItems()
		if len(t.GetPartitions()) > 0 {
			r.Counts, r.LeftOn = task.GetCounts(), LeftOnIn(t.GetPartitions())
		}
	}
	if t.GetReadyAt() != nil {
		r.ReadyAt = t.GetReadyAt().AsTime()
	}
	if task.GetQueuedAt() != nil {
		r.QueuedAt = task.GetQueuedAt().AsTime()
	}
	if task.GetLateSince() != nil {
		r.LateSince = task.GetLateSince().AsTime()
	}
}
