package runlogs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// endPatience is how long a follower waits for the rest of a log after the end of its attempt. A node that cannot reach the
// store delivers the rest later.
const endPatience = time.Minute

// Follower sends the logs of the tasks of one run to one client. It reads only the logs of tasks that have been assigned
// to a node. It is not safe for concurrent use.
type Follower struct {
	Run  string
	home string // prefix of its logs in the store
	// generation is the newest generation of the run.
	generation int32
	store      *store.Store
	req        *v1.StreamRunLogsRequest
	send       func(*v1.StreamRunLogsResponse) error

	// resume holds the position of earlier streams of the request in each log. resumed holds the newest attempt that they
	// sent output of, for each task, instance and batch.
	resume  map[logKey]int64
	resumed map[string]logs.Attempt

	Seen  int64 // version of the run at the last Update
	tails map[string]*tail
	// fanOuts holds the fanned-out tasks, whose logs are those of their instances and batches.
	fanOuts map[string]*fanOut
	// ended is set once the run has ended, and complete once everything has been sent.
	ended, complete bool
}

// logKey identifies the log of one dispatch.
type logKey struct {
	task                       string
	generation, attempt, claim int32
}

func keyOf(a logs.Attempt) logKey { return logKey{a.Task, a.Generation, a.Attempt, a.Claim} }

// New returns a follower that answers a request about a run. It reads logs from kept and passes messages to send.
func New(run string, kept *store.Store, req *v1.StreamRunLogsRequest, send func(*v1.StreamRunLogsResponse) error) *Follower {
	f := &Follower{
		Run: run, store: kept, req: req, send: send, tails: map[string]*tail{}, fanOuts: map[string]*fanOut{},
		resume: map[logKey]int64{}, resumed: map[string]logs.Attempt{},
	}
	for _, p := range req.GetResume() {
		a := logs.Attempt{Run: run, Task: p.GetTask(), Generation: p.GetGeneration(), Attempt: p.GetAttempt(), Claim: p.GetClaim()}
		f.resume[keyOf(a)] = p.GetNext()
		name := a.Task
		if _, _, ok := names.ParseInstanceName(req.GetTask()); ok {
			name = req.GetTask() // logs of batches are read on behalf of the requested instance
		}
		if newest, known := f.resumed[name]; !known || newest.Compare(a) < 0 {
			f.resumed[name] = a
		}
	}
	return f
}

// selectAttempts selects the attempts of one task or instance to send first, in order: the newest, or every dispatch of the
// attempt that the client asked for. If earlier streams of the request have sent something, these are the unfinished and newer
// ones.
func (f *Follower) selectAttempts(name string, found []logs.Attempt) []logs.Attempt {
	switch {
	case len(f.resume) == 0 && f.req.Attempt != nil:
		return found
	case len(f.resume) == 0:
		return found[max(0, len(found)-1):]
	}
	newest, known := f.resumed[name]
	if !known {
		return found
	}
	return slices.DeleteFunc(found, func(a logs.Attempt) bool { return a.Compare(newest) < 0 })
}

// SendAll applies the last changes of a run and sends everything that is left, task by task. If the request follows the run,
// the caller repeats SendAll until IsComplete, because logs may arrive late.
func (f *Follower) SendAll(ctx context.Context, n runview.Delta) error {
	if err := f.Update(ctx, n); err != nil {
		return err
	}
	if !f.ended {
		f.ended = true
		for _, of := range f.fanOuts {
			of.final, of.changed = true, true
		}
		for _, t := range f.tails {
			t.final = true
		}
	}
	if err := f.listFanOuts(ctx); err != nil {
		return err
	}
	for _, t := range f.active() {
		for more := true; more; {
			var err error
			if more, err = f.advance(ctx, t); err != nil {
				return err
			}
		}
	}
	return f.finish()
}

// active returns the tails that may have something to send, ordered by the start of their tasks.
func (f *Follower) active() []*tail {
	var tails []*tail
	for key, t := range f.tails {
		switch {
		case !t.done && (t.isFinal() || len(t.queue) > 0):
			tails = append(tails, t)
		case t.of != nil:
			delete(f.tails, key) // there may be very many
		}
	}
	slices.SortFunc(tails, func(a, b *tail) int {
		started := func(t *tail) int64 {
			if at := t.info.GetStartedAt(); at != nil {
				return at.AsTime().UnixNano()
			}
			return t.info.GetAssignedAt().AsTime().UnixNano()
		}
		return cmp.Or(cmp.Compare(started(a), started(b)), cmp.Compare(a.number, b.number), cmp.Compare(a.task, b.task))
	})
	return tails
}

// Update applies changes of the run.
func (f *Follower) Update(ctx context.Context, n runview.Delta) error {
	f.Seen, f.home, f.generation = n.Version, n.Home, n.Run.GetGeneration()
	for _, changed := range n.Tasks {
		only, _, instance := names.ParseInstanceName(f.req.GetTask())
		if !instance {
			only = f.req.GetTask()
		}
		if only != "" && only != changed.Name {
			continue
		}
		if changed.Task.Count != nil || f.isOfOlderGeneration() {
			f.updateFanOut(changed)
			continue
		}
		t := f.tails[changed.Name]
		if t == nil {
			t = &tail{task: changed.Name}
			f.tails[changed.Name] = t
		}
		t.info, t.printer, t.retried = changed.Task, changed.Printer, changed.Retried
		if changed.Claim > 0 {
			if err := f.enqueue(ctx, t, changed); err != nil {
				return err
			}
		}
		// A task that is put back later starts again.
		if t.final = v1.HasTaskEnded(changed.Task) || f.isPastAttempt(changed.Task); !t.final || len(t.queue) > 0 {
			t.done = false
		}
		if !t.final && len(t.queue) < 2 {
			t.until = time.Time{}
		}
	}
	return nil
}

// isPastAttempt reports whether the wanted attempt has ended.
func (f *Follower) isPastAttempt(task *v1.Task) bool {
	return f.req.Attempt != nil && task.GetAttempt() > f.req.GetAttempt()
}

// enqueue adds the new attempts of a task. Of those that precede the first update only the newest is wanted, unless the
// client asked for a specific attempt.
func (f *Follower) enqueue(ctx context.Context, t *tail, changed runview.TaskDelta) error {
	own := logs.Attempt{Run: f.home, Task: t.task, Generation: f.generation, Attempt: changed.Task.GetAttempt(), Claim: changed.Claim}
	if t.printer != nil {
		own.Attempt = t.printer.Attempt
	}
	if t.known != nil && t.known.Claim >= own.Claim || t.then != nil && t.then.Claim >= own.Claim {
		return nil
	}
	found, err := logs.Attempts(ctx, f.store, f.home, t.task)
	if err != nil {
		return fmt.Errorf("read the logs of task %s: %w", t.task, err)
	}
	state := changed.Task.GetState()
	// In other states, the newest attempt has not been dispatched yet, or never will be.
	made := v1.IsTaskTerminal(state) && state != v1.TaskSkipped || v1.IsTaskDispatched(state) || state == v1.TaskPaused
	// A task that ended in an earlier generation may have been kept.
	k := slices.IndexFunc(found, func(a logs.Attempt) bool { return a.Claim == own.Claim })
	redispatch := own
	shared := f.sharedLog(t, found, own)
	if k < 0 && made && shared >= 0 {
		k, own.Claim = shared, found[shared].Claim
	}
	switch {
	case made && k >= 0:
		own.Generation = found[k].Generation
	case made && t.printer != nil && t.printer.Recorded:
		own.Generation = t.printer.Generation
	}
	// A dispatch that reused the record of an earlier one has printed nothing itself.
	answered := v1.HasTaskEnded(changed.Task) && slices.ContainsFunc(found, func(a logs.Attempt) bool {
		return a.Generation == own.Generation && a.Attempt == own.Attempt
	})
	if made && !answered && !slices.Contains(found, own) {
		found = append(found, own)
		slices.SortFunc(found, logs.Attempt.Compare)
	}
	found = slices.DeleteFunc(found, func(a logs.Attempt) bool { return a.Generation != f.wantedGeneration(own.Generation) })
	if f.req.Attempt != nil {
		found = slices.DeleteFunc(found, func(a logs.Attempt) bool { return a.Attempt != f.req.GetAttempt() })
	}
	if t.known == nil {
		if len(found) > 1 && len(f.resume) == 0 && f.req.Attempt == nil {
			// A stream that resumes this one must omit the same attempts.
			if err := f.sendPosition(found[len(found)-1]); err != nil {
				return err
			}
		}
		found = f.selectAttempts(t.task, found)
	}
	for _, a := range found {
		if t.known == nil || a.Compare(*t.known) > 0 {
			t.push(a, f.resume)
		}
	}
	if made && t.known != nil && isShared(t.info.GetType(), *t.known, redispatch) {
		f.awaitNext(t, redispatch)
	}
	return nil
}

// wantedGeneration returns the generation whose logs of a task are wanted: the requested one, or else the newest one in
// which the task started.
func (f *Follower) wantedGeneration(newest int32) int32 {
	if f.req.Generation != nil {
		return f.req.GetGeneration()
	}
	return newest
}

// isOfOlderGeneration reports whether the requested generation is not the newest.
func (f *Follower) isOfOlderGeneration() bool {
	return f.req.Generation != nil && f.req.GetGeneration() < f.generation
}

// SendNew sends the new entries of all tasks, alternating between them chunk by chunk.
func (f *Follower) SendNew(ctx context.Context) error {
	if err := f.listFanOuts(ctx); err != nil {
		return err
	}
	for progress := true; progress; {
		progress = false
		for _, t := range f.active() {
			more, err := f.advance(ctx, t)
			if err != nil {
				return err
			}
			progress = progress || more
		}
	}
	return f.finish()
}

// IsComplete reports whether the run or the requested task had ended at the last SendNew or SendAll, which sent all the rest.
func (f *Follower) IsComplete() bool { return f.complete }

func (f *Follower) hasSentAll() bool {
	if !f.ended && len(f.fanOuts) == 0 {
		t := f.tails[f.req.GetTask()]
		return t != nil && t.done
	}
	if !f.ended && f.req.GetTask() == "" {
		return false
	}
	for _, of := range f.fanOuts {
		if !of.final || f.isAwaited(of) {
			return false
		}
	}
	return len(f.active()) == 0
}

// finish reports the instances whose output is missing once everything else has been sent.
func (f *Follower) finish() error {
	if f.complete = f.hasSentAll(); !f.complete {
		return nil
	}
	return f.sendAllMissing()
}

// advance sends the next chunk of a task's log. more reports whether there may be another one. An attempt is complete when
// its log says so, or when a later attempt has started or the task has ended and no more output is to be expected.
func (f *Follower) advance(ctx context.Context, t *tail) (more bool, err error) {
	if len(t.queue) == 0 {
		t.done = t.isFinal()
		return false, nil
	}
	a := t.queue[0]
	entries, next, ended, err := logs.Read(ctx, f.store, a, t.next)
	if err != nil {
		return false, fmt.Errorf("read the log of task %s: %w", t.task, err)
	}
	more = next > t.next
	t.next = next
	if more {
		if err := f.emit(t, a, entries, next); err != nil {
			return false, err
		}
	}
	if !ended && !more && (t.isFinal() || len(t.queue) > 1) {
		if ended, err = f.abandon(ctx, t, a); err != nil {
			return false, err
		}
	}
	if ended {
		t.pop(f.resume)
		more = true
	}
	return more, nil
}

// abandon reports whether to stop reading the log of an ended attempt, which has no end so far. If the attempt printed
// something, a follower first waits for the rest, and then reports that it is missing.
func (f *Follower) abandon(ctx context.Context, t *tail, a logs.Attempt) (bool, error) {
	missing := t.missing(a)
	if missing == nil || missing.GetPartial() && !f.req.GetFollow() {
		return true, nil
	}
	if f.req.GetFollow() {
		if t.until.IsZero() && t.next > 0 {
			// An earlier stream of the request may have read the end.
			if ended, err := logs.HasEnd(ctx, f.store, a, t.next); ended || err != nil {
				return ended, err
			}
		}
		if isBefore(&t.until) {
			return false, nil
		}
	}
	return true, f.sendMissing(missing)
}

// isBefore reports whether a time that begins endPatience after the first call is still to come.
func isBefore(until *time.Time) bool {
	if until.IsZero() {
		*until = time.Now().Add(endPatience)
	}
	return time.Now().Before(*until)
}

// sendMissing reports that output of an attempt is missing in the store.
func (f *Follower) sendMissing(missing *v1.MissingLog) error {
	return f.send(&v1.StreamRunLogsResponse{Missing: missing})
}

// sendPosition announces the log that is sent next.
func (f *Follower) sendPosition(a logs.Attempt) error {
	return f.send(&v1.StreamRunLogsResponse{Position: &v1.LogPosition{Task: a.Task, Generation: a.Generation, Attempt: a.Attempt, Claim: a.Claim}})
}

// emit sends the wanted entries of a log and the position after them.
func (f *Follower) emit(t *tail, a logs.Attempt, entries []*v1.LogEntry, next int64) error {
	since := f.req.GetSince()
	wanted := make([]*v1.LogEntry, 0, len(entries))
	for _, e := range entries {
		if f.req.GetStream() != "" && e.GetStream() != f.req.GetStream() {
			continue
		}
		if f.req.Attempt != nil && e.GetAttempt() != f.req.GetAttempt() {
			continue // belongs to another instance of the batch
		}
		if t.of != nil && f.isSuperseded(t.of, e) {
			continue
		}
		if since != nil && e.GetTime().AsTime().Before(since.AsTime()) {
			continue
		}
		wanted = append(wanted, e)
	}
	if len(wanted) == 0 {
		return nil
	}
	return f.send(&v1.StreamRunLogsResponse{
		Entries:  wanted,
		Position: &v1.LogPosition{Task: a.Task, Generation: a.Generation, Attempt: a.Attempt, Claim: a.Claim, Next: next},
	})
}
