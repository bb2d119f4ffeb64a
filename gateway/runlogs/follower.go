package runlogs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Follower sends the logs of the tasks of one run to one client. It reads only the logs of tasks that have been given to a
// node. It is not safe for concurrent use.
type Follower struct {
	Run  string
	home string // where it keeps its logs
	// generation is the newest of the run.
	generation int32
	store      *store.Store
	req        *v1.StreamRunLogsRequest
	send       func(*v1.StreamRunLogsResponse) error

	// resume is how far earlier streams of the request came, and resumed the tasks, instances and batches that they sent
	// something of, by the newest attempt of which they did.
	resume  map[logKey]int64
	resumed map[string]logs.Attempt

	Seen  int64 // version of the run that Update has seen
	tails map[string]*tail
	// fanOuts are the tasks that have fanned out, whose logs are those of their instances and batches.
	fanOuts map[string]*fanOut
}

// logKey names the log of one dispatch.
type logKey struct {
	task                       string
	generation, attempt, claim int32
}

func keyOf(a logs.Attempt) logKey { return logKey{a.Task, a.Generation, a.Attempt, a.Claim} }

// New returns a follower that answers a request about a run with send, from the logs in a store.
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
			name = req.GetTask() // the logs of batches are read for it
		}
		if newest, known := f.resumed[name]; !known || newest.Compare(a) < 0 {
			f.resumed[name] = a
		}
	}
	return f
}

// wanted picks the attempts of one task or instance, in order, to send at first: the newest, or, when earlier streams of
// the request sent something, what they had not finished and what is newer.
func (f *Follower) wanted(name string, found []logs.Attempt) []logs.Attempt {
	if len(f.resume) == 0 {
		return found[max(0, len(found)-1):]
	}
	newest, known := f.resumed[name]
	if !known {
		return found
	}
	return slices.DeleteFunc(found, func(a logs.Attempt) bool { return a.Compare(newest) < 0 })
}

// SendAll takes over the last changes of a run and sends everything that is left, task by task.
func (f *Follower) SendAll(ctx context.Context, n runview.Delta) error {
	if err := f.Update(ctx, n); err != nil {
		return err
	}
	for _, of := range f.fanOuts {
		of.final, of.changed = true, true
	}
	if err := f.listFanOuts(ctx); err != nil {
		return err
	}
	for _, t := range f.tails {
		t.final = true
	}
	for _, t := range f.active() {
		for !t.done {
			if _, err := f.advance(ctx, t); err != nil {
				return err
			}
		}
	}
	return f.SendAllMissing()
}

// active returns the tails that have, or may have, something to send, in the order in which their tasks started.
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

// Update takes over what has changed in the run.
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
		t.info, t.printer = changed.Task, changed.Printer
		if changed.Claim > 0 {
			if err := f.enqueue(ctx, t, changed); err != nil {
				return err
			}
		}
		// A task that is put back later starts again.
		if t.final = v1.HasTaskEnded(changed.Task) || f.isPastAttempt(changed.Task); !t.final || len(t.queue) > 0 {
			t.done = false
		}
	}
	return nil
}

// isPastAttempt reports whether the one attempt that is wanted has ended.
func (f *Follower) isPastAttempt(task *v1.Task) bool {
	return f.req.Attempt != nil && task.GetAttempt() > f.req.GetAttempt()
}

// enqueue adds the attempts of a task that are new. Of those that lie before the
// first look only the newest is wanted, unless the client has named one.
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
	// In any other state the newest attempt has not been made yet, or never will be.
	made := v1.IsTaskTerminal(state) && state != v1.TaskSkipped || v1.IsTaskDispatched(state) || state == v1.TaskPaused
	// What ended in an earlier generation may have been kept.
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
	// A dispatch that was answered by the record of an earlier one has printed nothing itself.
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
		if len(found) > 1 && len(f.resume) == 0 {
			// A stream that resumes this one must leave the same attempts out.
			if err := f.sendPosition(found[len(found)-1]); err != nil {
				return err
			}
		}
		found = f.wanted(t.task, found)
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

// wantedGeneration returns the generation of the logs of a task that are wanted, given the newest in which it was started.
func (f *Follower) wantedGeneration(newest int32) int32 {
	if f.req.Generation != nil {
		return f.req.GetGeneration()
	}
	return newest
}

// isOfOlderGeneration reports whether the one generation that is wanted has been followed by another.
func (f *Follower) isOfOlderGeneration() bool {
	return f.req.Generation != nil && f.req.GetGeneration() < f.generation
}

// SendNew sends the new entries of every task, a piece of each in turn.
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
	return nil
}

// IsComplete reports whether the one task that is wanted has ended and its whole log has been sent.
func (f *Follower) IsComplete() bool {
	for _, of := range f.fanOuts {
		if f.req.GetTask() != "" {
			return of.final && len(f.active()) == 0
		}
	}
	t := f.tails[f.req.GetTask()]
	return t != nil && t.done
}

// advance sends the next piece of a task's log; more says that there may be
// another. An attempt is over when its log says so, or when a later one has
// begun or the task has ended and nothing more of it has come.
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
	if ended || !more && (t.isFinal() || len(t.queue) > 1) {
		isMissing := t.next == 0 && (t.unsure == nil || *t.unsure != a)
		if isMissing && t.printer != nil && len(t.queue) == 1 && a.Attempt == t.printer.Attempt {
			if err := f.sendMissing(t.task, *t.printer); err != nil {
				return false, err
			}
		}
		t.pop(f.resume)
		more = true
	}
	return more, nil
}

// sendMissing sends that an attempt printed something of which the store has nothing.
func (f *Follower) sendMissing(task string, p runview.Printer) error {
	return f.send(&v1.StreamRunLogsResponse{Missing: &v1.MissingLog{Task: task, Attempt: p.Attempt, Node: p.Node}})
}

// sendPosition sends that a log is about to be sent.
func (f *Follower) sendPosition(a logs.Attempt) error {
	return f.send(&v1.StreamRunLogsResponse{Position: &v1.LogPosition{Task: a.Task, Generation: a.Generation, Attempt: a.Attempt, Claim: a.Claim}})
}

// emit sends those entries of a log that are wanted, and where it continues.
func (f *Follower) emit(t *tail, a logs.Attempt, entries []*v1.LogEntry, next int64) error {
	since := f.req.GetSince()
	wanted := make([]*v1.LogEntry, 0, len(entries))
	for _, e := range entries {
		if f.req.GetStream() != "" && e.GetStream() != f.req.GetStream() {
			continue
		}
		if f.req.Attempt != nil && e.GetAttempt() != f.req.GetAttempt() {
			continue // of another instance of the batch
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
