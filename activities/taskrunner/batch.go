package taskrunner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/results"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

const (
	// maxBatchAnswer bounds the streams and outputs in the answer of a batch, in bytes. It also bounds the whole answer:
	// a batch whose members return too much ends early.
	maxBatchAnswer = 512 << 10
	// maxMemberRecord is the largest result, in bytes, that is stored in the record of its batch, and maxBatchRecord
	// bounds that record. Other results have a record of their own.
	maxMemberRecord = 16 << 10
	maxBatchRecord  = 4 << 20
	// maxBatchBeat is the largest list of results, in bytes, that a heartbeat carries. For a larger list the heartbeat
	// names the record instead.
	maxBatchBeat = 16 << 10
)

// batch collects the ends of the members of a batch, in order. Its lists are read while members are added.
type batch struct {
	node  *Node
	req   *historyv1.ExecuteRequest
	key   string // of the batch's record
	limit int    // bytes of a member's streams and output that travel
	began time.Time

	// saved is how many members the stored record has. Only the checkpointer uses it.
	saved int

	mu sync.Mutex
	// travel is the content of the answer, and record that of the batch's record.
	travel, record         []*historyv1.MemberResult
	travelSize, recordSize int
	// refers is set if travel refers to the record and is incomplete without it.
	refers bool
}

func (n *Node) newBatch(a *attempt) *batch {
	size := len(a.members)
	return &batch{
		node: n, req: a.req, key: batchKey(a.req), limit: min(int(a.req.GetInlineLimit()), maxBatchAnswer/size), began: a.takenUpAt.AsTime(),
		travel: make([]*historyv1.MemberResult, 0, size), record: make([]*historyv1.MemberResult, 0, size),
	}
}

// batchName returns the name of a batch, made of its first and its last instance.
func batchName(req *historyv1.ExecuteRequest) string {
	first, last := req.GetIndex(), req.GetIndex()
	for _, m := range req.GetBatch() {
		first, last = min(first, m.GetIndex()), max(last, m.GetIndex())
	}
	return storekey.BatchName(req.GetTask(), int(first), int(last))
}

// batchKey returns the key of the record of a batch, or "" if the request is not for a batch.
func batchKey(req *historyv1.ExecuteRequest) string {
	if len(req.GetBatch()) == 0 {
		return ""
	}
	return storekey.Batch(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), batchName(req), req.GetAttempt(), req.GetClaim())
}

// runBatch runs the members of a batch one after another, in one workspace and one process tree. It skips members in
// before, which were answered earlier, and continues when a member fails. A cause that ends the batch as a whole ends the
// running member; members that have not started are not in the answer. The state "completed" of the answer means that
// every member was run or skipped.
func (n *Node) runBatch(ctx context.Context, a *attempt, exec executor.Executor, s *inputs, before map[int32]priorResult) (*historyv1.ExecuteResponse, error) {
	b := n.newBatch(a)
	w := &work{node: n, attempt: a, inputs: s, gpus: n.grantedGPUs(a.req)}
	defer w.close()
	var err error
	if w.secrets, err = n.secretReader().awaitSecrets(ctx, a.req, &a.members[0]); err != nil {
		return stopped(ctx, nil), nil
	}
	w.log = w.newLog()
	w.log.openBatch()
	w.log.writeNotices(slices.Concat(s.notices, w.secrets.notices)...)
	w.checkpointer = w.startCheckpointer(ctx, b)
	end, err := w.runMembers(ctx, exec, b, before)
	w.checkpointer.stop()

	cleanup, done := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer done()
	_ = w.log.close(cleanup) // logged
	if err != nil && b.ended() == 0 {
		return nil, err
	}
	if err != nil {
		n.Logger.Warn("a batch has ended early", "run", a.req.GetRunId(), "task", a.req.GetTask(), "error", err)
	}
	return b.report(cleanup, a, end), nil
}

// runMembers runs the members and returns the state in which the batch ended.
func (w *work) runMembers(ctx context.Context, exec executor.Executor, b *batch, before map[int32]priorResult) (*historyv1.ExecuteResponse, error) {
	done, members := &historyv1.ExecuteResponse{State: v1.TaskCompleted}, w.attempt.members
	w.run = exec.Run
	if begin := exec.Capabilities().Batch; begin != nil {
		row, err := begin(w.id(&members[0]), w.attempt.beats.lease)
		if err != nil {
			return done, err
		}
		defer func() {
			if err := row.Close(); err != nil {
				w.node.Logger.Warn("something of a batch is left", "run", b.req.GetRunId(), "task", b.req.GetTask(), "error", err)
			}
		}()
		w.run = row.Run
	}
	for i := range members {
		m := &members[i]
		if earlier, ok := before[m.index]; ok {
			if err := b.add(ctx, m, earlier.cut(b.limit), true); err != nil {
				return done, err
			}
			continue
		}
		if ctx.Err() != nil {
			return stopped(ctx, nil), nil
		}
		if !w.node.attempts.start(w.attempt) {
			return moved(v1.ReasonDraining, fmt.Sprintf("node %s is draining", w.node.Name)), nil
		}
		if b.full() {
			return done, nil
		}
		w.log.Begin(m.name, m.attempt, m.claim)
		res, err := w.prepare(ctx, m)
		if err == nil && res == nil {
			res, err = w.do(ctx, m)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return stopped(ctx, nil), nil
		case err != nil:
			// The node is at fault, and would be for the other members, too: they move to another node.
			res := &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: v1.ReasonSystem, Error: err.Error(), Result: &v1.TaskResult{ExitCode: -1}}
			w.started = time.Time{}
			return done, b.add(ctx, m, w.timed(res), false)
		case res.GetState() == v1.AttemptMoved:
			return res, nil
		}
		if err := b.add(ctx, m, w.timed(res), false); err != nil {
			return done, err
		}
		if res.GetState() == v1.TaskCancelled {
			return &historyv1.ExecuteResponse{State: v1.TaskCancelled, Reason: res.GetReason()}, nil
		}
	}
	return done, nil
}

// ended returns how many members have ended.
func (b *batch) ended() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.travel)
}

// full reports whether the answer has no space left.
func (b *batch) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.travelSize > maxBatchAnswer
}

// add appends the end of a member. A result that is too large to travel is stored in the record of the batch, or in a
// record of its own if it is too large for that one. kept is true if the result is stored already.
func (b *batch) add(ctx context.Context, m *member, res *historyv1.ExecuteResponse, kept bool) error {
	r := b.result(m, res)
	if kept || results.Fits(res, b.limit) {
		b.append(r, r, false)
		return nil
	}
	b.mu.Lock()
	inside := b.recordSize + proto.Size(r)
	b.mu.Unlock()
	if inside <= maxBatchRecord && proto.Size(r) <= maxMemberRecord {
		b.append(b.result(m, results.Cut(res, store.MemberReference(b.key, m.index), b.limit)), r, true)
		return nil
	}
	key := storekey.Result(names.Home(b.req.GetRunId(), b.req.GetChain()), b.req.GetGeneration(), m.name, m.attempt)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	var first *historyv1.ExecuteResponse
	err := b.node.records().insist(ctx, func() (err error) {
		first, err = b.node.records().putRecord(ctx, key, res)
		return err
	})
	if err != nil {
		return fmt.Errorf("store the result of %s: %w", m.name, err)
	}
	r = b.result(m, results.Cut(first, key, b.limit))
	b.append(r, r, false)
	return nil
}

func (b *batch) append(travel, record *historyv1.MemberResult, refers bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.travel, b.record = append(b.travel, travel), append(b.record, record)
	b.travelSize += proto.Size(travel)
	b.recordSize += proto.Size(record)
	b.refers = b.refers || refers
}

// result converts the answer of a member into the form that a batch's answer has. A member that completed and left
// nothing has only its times.
func (b *batch) result(m *member, res *historyv1.ExecuteResponse) *historyv1.MemberResult {
	r := &historyv1.MemberResult{Index: m.index, StartedMs: -1}
	if at := res.GetStartedAt(); at != nil {
		r.StartedMs = int32(max(at.AsTime().Sub(b.began).Milliseconds(), 0))
		r.TookMs = int32(res.GetCompletedAt().AsTime().Sub(at.AsTime()).Milliseconds())
	}
	result := res.GetResult()
	if res.GetState() == v1.TaskCompleted && res.GetRecord() == "" && result.GetStdout() == "" && result.GetStderr() == "" &&
		len(result.GetOutput().GetFields()) == 0 && len(result.GetContextUpdate().GetFields()) == 0 && result.GetContainer() == "" && len(result.GetArtifacts()) == 0 {
		return r
	}
	r.State, r.Reason, r.Error, r.Result, r.Record = res.GetState(), res.GetReason(), res.GetError(), result, res.GetRecord()
	r.Checkpoint = res.GetCheckpoint()
	return r
}

// save stores the record of the first ended members.
func (b *batch) save(ctx context.Context, ended int) error {
	b.mu.Lock()
	record := &historyv1.ExecuteResponse{Node: b.node.Name, AssignedAt: timestamppb.New(b.began), Batch: b.record[:ended:ended]}
	b.mu.Unlock()
	return b.node.Store.PutMessage(ctx, b.key, record)
}

// saveIfNew updates the stored record while the batch runs. It returns how many members the record has, and false if the
// record could not be stored.
func (b *batch) saveIfNew(ctx context.Context) (ended int, ok bool) {
	ended = b.ended()
	if ended == b.saved {
		return ended, true
	}
	ctx, cancel := context.WithTimeout(ctx, b.node.Timing.recordTimeout())
	defer cancel()
	if err := b.save(ctx, ended); err != nil {
		b.node.Logger.Debug("the progress of a batch was not stored", "run", b.req.GetRunId(), "task", b.req.GetTask(), "error", err)
		return 0, false
	}
	b.saved = ended
	return ended, true
}

// putProgress puts the ends of the first ended members into a heartbeat. The stored record must contain them already.
func (b *batch) putProgress(p *historyv1.ExecuteProgress, ended int) {
	b.mu.Lock()
	travel := b.travel[:ended:ended]
	b.mu.Unlock()
	p.Ended, p.Batch, p.Record = int32(ended), nil, b.key
	if proto.Size(&historyv1.ExecuteProgress{Batch: travel}) <= maxBatchBeat {
		p.Batch, p.Record = travel, ""
	}
}

// report returns the answer of a batch that ended in the state of end. A result that an earlier attempt completed
// meanwhile takes precedence over this attempt's.
func (b *batch) report(ctx context.Context, a *attempt, end *historyv1.ExecuteResponse) *historyv1.ExecuteResponse {
	a.stamp(end)
	defer a.progress.announce(phrase.StoreWait)()
	earlier, err := b.node.records().priorResults(ctx, b.req, a.members)
	if err != nil {
		b.node.Logger.Warn("earlier results could not be looked for", "run", b.req.GetRunId(), "task", b.req.GetTask(), "error", err)
	}
	byIndex := make(map[int32]*member, len(earlier))
	for i := range a.members {
		byIndex[a.members[i].index] = &a.members[i]
	}
	for i, r := range b.travel {
		if e, ok := earlier[r.GetIndex()]; ok {
			b.travel[i] = b.result(byIndex[r.GetIndex()], e.cut(b.limit))
			b.record[i] = b.travel[i]
		}
	}
	if a.beats.lease.Over() {
		// This process stalled after the end, so the tasks may be running elsewhere. The next dispatch finds the record.
		ctx, cancel := context.WithTimeout(ctx, b.node.Timing.recordTimeout())
		defer cancel()
		if err := b.save(ctx, len(b.record)); err != nil {
			b.node.Logger.Warn("the results of a batch were not recorded", "run", b.req.GetRunId(), "task", b.req.GetTask(), "error", err)
		}
		return moved(v1.ReasonLeaseLost, errLeaseLost.Error())
	}
	end.Batch = b.travel
	if len(b.travel) == 0 {
		return end
	}
	if !b.refers {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.node.Timing.recordTimeout())
		defer cancel()
	}
	if err := b.save(ctx, len(b.record)); err != nil {
		b.node.Logger.Warn("the results of a batch were not recorded", "run", b.req.GetRunId(), "task", b.req.GetTask(), "error", err)
		// Members whose results are only in the record run again.
		own := b.key + "#"
		end.Batch = slices.DeleteFunc(slices.Clone(b.travel), func(r *historyv1.MemberResult) bool { return strings.HasPrefix(r.GetRecord(), own) })
	}
	return end
}
