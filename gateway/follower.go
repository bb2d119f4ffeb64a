package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// follower sends the logs of the tasks of one run to one client. It reads only
// the logs of tasks that have been given to a node.
type follower struct {
	run   string
	home  string // where it keeps its logs
	store *store.Store
	req   *v1.StreamRunLogsRequest
	send  func(*v1.StreamRunLogsResponse) error

	// resume is how far earlier streams of the request came, and resumed the tasks, instances and batches that they sent
	// something of, by the newest attempt of which they did.
	resume  map[logKey]int64
	resumed map[string]logs.Attempt

	seen  int64 // version of the run that has been taken in
	tails map[string]*tail
	// fans are the tasks that have fanned out, whose logs are those of their instances and batches.
	fans map[string]*fan
}

// logKey names the log of one dispatch.
type logKey struct {
	task           string
	attempt, claim int32
}

func keyOf(a logs.Attempt) logKey { return logKey{a.Task, a.Attempt, a.Claim} }

func newFollower(run string, kept *store.Store, req *v1.StreamRunLogsRequest, send func(*v1.StreamRunLogsResponse) error) *follower {
	f := &follower{
		run: run, store: kept, req: req, send: send, tails: map[string]*tail{}, fans: map[string]*fan{},
		resume: map[logKey]int64{}, resumed: map[string]logs.Attempt{},
	}
	for _, p := range req.GetResume() {
		a := logs.Attempt{Run: run, Task: p.GetTask(), Attempt: p.GetAttempt(), Claim: p.GetClaim()}
		f.resume[keyOf(a)] = p.GetNext()
		if newest, known := f.resumed[a.Task]; !known || order(newest, a) < 0 {
			f.resumed[a.Task] = a
		}
	}
	return f
}

// wanted picks the attempts of one task or instance, in order, to send at first: the newest, or, when earlier streams of
// the request sent something, what they had not finished and what is newer.
func (f *follower) wanted(name string, found []logs.Attempt) []logs.Attempt {
	if len(f.resume) == 0 {
		return found[max(0, len(found)-1):]
	}
	newest, known := f.resumed[name]
	if !known {
		return found
	}
	return slices.DeleteFunc(found, func(a logs.Attempt) bool { return order(a, newest) < 0 })
}

// tail is how far the log of one task, instance or batch has been sent.
type tail struct {
	task string
	info *v1.Task
	// printer is the attempt that printed what its result holds, or nil if it has not ended or nothing was printed.
	printer *printer
	// number is the place of the log among those of its task.
	number int
	// queue are the attempts still to send; the first is being sent.
	queue []logs.Attempt
	// next is the chunk of the first attempt to go on from.
	next int64
	// known is the newest attempt that has been in the queue.
	known *logs.Attempt
	// final: the queue will not grow any more. done: all of it is sent.
	final, done bool
	// of is the task whose instance or batch it is; nil: it is a task of its own.
	of *fan
}

// over says that nothing will be printed any more.
func (t *tail) over() bool { return t.final || t.of != nil && t.of.final }

// all takes in the last of a run and sends all that is left, task by task.
func (f *follower) all(ctx context.Context, n news) error {
	if err := f.learn(ctx, n); err != nil {
		return err
	}
	for _, of := range f.fans {
		of.final, of.changed = true, true
	}
	if err := f.listFans(ctx); err != nil {
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
	return f.tellMissing()
}

// active are the tails that have something to send, or might, in the order in
// which their tasks started.
func (f *follower) active() []*tail {
	var tails []*tail
	for key, t := range f.tails {
		switch {
		case !t.done && (t.over() || len(t.queue) > 0):
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

// learn takes in what has changed in the run.
func (f *follower) learn(ctx context.Context, n news) error {
	f.seen, f.home = n.version, n.home
	for _, changed := range n.tasks {
		only, _, instance := names.ParseInstanceName(f.req.GetTask())
		if !instance {
			only = f.req.GetTask()
		}
		if only != "" && only != changed.name {
			continue
		}
		if changed.task.Count != nil {
			f.learnFan(changed)
			continue
		}
		t := f.tails[changed.name]
		if t == nil {
			t = &tail{task: changed.name}
			f.tails[changed.name] = t
		}
		t.info, t.printer = changed.task, changed.printer
		if changed.claim > 0 {
			if err := f.enqueue(ctx, t, changed); err != nil {
				return err
			}
		}
		// A task that is put back later starts again.
		if t.final = v1.IsTaskTerminal(changed.task.GetState()) || f.past(changed.task); !t.final || len(t.queue) > 0 {
			t.done = false
		}
	}
	return nil
}

// past says that the one attempt that is wanted is over.
func (f *follower) past(task *v1.Task) bool {
	return f.req.Attempt != nil && task.GetAttempt() > f.req.GetAttempt()
}

// enqueue adds the attempts of a task that are new. Of those that lie before the
// first look only the newest is wanted, unless the client has named one.
func (f *follower) enqueue(ctx context.Context, t *tail, changed taskNews) error {
	own := logs.Attempt{Run: f.home, Task: t.task, Attempt: changed.task.GetAttempt(), Claim: changed.claim}
	if t.printer != nil {
		own.Attempt = t.printer.attempt
	}
	if t.known != nil && order(*t.known, own) >= 0 {
		return nil
	}
	found, err := logs.Attempts(ctx, f.store, f.home, t.task)
	if err != nil {
		return fmt.Errorf("read the logs of task %s: %w", t.task, err)
	}
	state := changed.task.GetState()
	// In any other state the newest attempt has not been made yet.
	made := v1.IsTaskTerminal(state) || v1.IsTaskDispatched(state) || state == v1.TaskPaused
	// A dispatch that was answered by the record of an earlier one has printed nothing itself.
	answered := v1.IsTaskTerminal(state) && slices.ContainsFunc(found, func(a logs.Attempt) bool { return a.Attempt == own.Attempt })
	if made && !answered && !slices.Contains(found, own) {
		found = append(found, own)
		slices.SortFunc(found, order)
	}
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
		if t.known == nil || order(a, *t.known) > 0 {
			if len(t.queue) == 0 {
				t.next = f.resume[keyOf(a)]
			}
			t.queue = append(t.queue, a)
			t.known = &a
		}
	}
	return nil
}

// order puts attempts into the order in which they were made.
func order(a, b logs.Attempt) int {
	return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Claim, b.Claim))
}

// pass sends what is new of every task, a piece of each in turn.
func (f *follower) pass(ctx context.Context) error {
	if err := f.listFans(ctx); err != nil {
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

// complete says that the one task that is wanted has ended and is all sent.
func (f *follower) complete() bool {
	for _, of := range f.fans {
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
func (f *follower) advance(ctx context.Context, t *tail) (more bool, err error) {
	if len(t.queue) == 0 {
		t.done = t.over()
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
		if err := f.emit(a, entries, next); err != nil {
			return false, err
		}
	}
	if ended || !more && (t.over() || len(t.queue) > 1) {
		if t.next == 0 && t.printer != nil && len(t.queue) == 1 && a.Attempt == t.printer.attempt {
			if err := f.sendMissing(t.task, *t.printer); err != nil {
				return false, err
			}
		}
		t.queue, t.next = t.queue[1:], 0
		if len(t.queue) > 0 {
			t.next = f.resume[keyOf(t.queue[0])]
		}
		more = true
	}
	return more, nil
}

// sendMissing tells of an attempt that printed something of which the store has nothing.
func (f *follower) sendMissing(task string, p printer) error {
	return f.send(&v1.StreamRunLogsResponse{Missing: &v1.MissingLog{Task: task, Attempt: p.attempt, Node: p.node}})
}

// sendPosition tells that a log is going to be sent.
func (f *follower) sendPosition(a logs.Attempt) error {
	return f.send(&v1.StreamRunLogsResponse{Position: &v1.LogPosition{Task: a.Task, Attempt: a.Attempt, Claim: a.Claim}})
}

// emit sends those entries of a log that are wanted, and where it continues.
func (f *follower) emit(a logs.Attempt, entries []*v1.LogEntry, next int64) error {
	since := f.req.GetSince()
	wanted := make([]*v1.LogEntry, 0, len(entries))
	for _, e := range entries {
		if f.req.GetStream() != "" && e.GetStream() != f.req.GetStream() {
			continue
		}
		if f.req.Attempt != nil && e.GetAttempt() != f.req.GetAttempt() {
			continue // of another instance of the batch
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
		Position: &v1.LogPosition{Task: a.Task, Attempt: a.Attempt, Claim: a.Claim, Next: next},
	})
}
