package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// logInterval is the shortest time between two looks at the logs of running tasks.
const logInterval = 100 * time.Millisecond

// StreamRunLogs sends what tasks have printed. Without follow it sends what is
// there, task by task in the order in which they started; with follow it goes on
// with what comes until the run, or the one task, has ended.
func (g *Gateway) StreamRunLogs(ctx context.Context, req *connect.Request[v1.StreamRunLogsRequest], stream *connect.ServerStream[v1.StreamRunLogsResponse]) error {
	id, err := g.resolve(ctx, req.Msg.GetId())
	if err != nil {
		return err
	}
	f := newFollower(id, g.store, req.Msg, stream.Send)
	if err := sendHeaders(stream); err != nil {
		return err
	}
	if !req.Msg.GetFollow() {
		v, err := g.reader.read(ctx, id)
		if err != nil {
			return err
		}
		if err := f.check(v); err != nil {
			return err
		}
		return f.all(ctx, v.since(0))
	}
	return g.followLogs(ctx, f)
}

// followLogs sends logs as they come.
func (g *Gateway) followLogs(ctx context.Context, f *follower) error {
	p, release := g.pollers.watch(f.run)
	defer release()
	for {
		start := time.Now()
		n := p.since(f.seen)
		if n.done && n.err != nil {
			return g.ended(n.err)
		}
		if f.seen == 0 && n.version > 0 {
			if err := p.look(f.check); err != nil {
				return err
			}
		}
		if n.done {
			return f.all(ctx, n)
		}
		if err := f.learn(ctx, n); err != nil {
			return err
		}
		if err := f.pass(ctx); err != nil {
			return err
		}
		if f.complete() {
			return f.tellMissing()
		}
		select {
		case <-n.changed:
		case <-time.After(max(logInterval, 10*time.Since(start))):
		case <-ctx.Done():
			return ctx.Err()
		case <-g.stopping:
			return errStopping()
		}
	}
}

// check says what is wrong with the task and the attempt that a request names.
func (f *follower) check(v *view) error {
	name := f.req.GetTask()
	if name == "" {
		return nil
	}
	t := v.tasks[name]
	if task, index, ok := names.ParseInstanceName(name); ok && v.tasks[task] != nil {
		// A task that follows may fan out later.
		if count := v.tasks[task].task.Count; count != nil && index >= int(*count) || count == nil && !f.req.GetFollow() {
			return notFound("task %s of run %s has no instance %d; it has %d", task, f.run, index, v.tasks[task].task.GetCount())
		}
		return nil
	}
	if t == nil {
		return v.noTask(name)
	}
	if attempt := f.req.GetAttempt(); !f.req.GetFollow() && t.task.Count == nil && attempt > t.brief.GetAttempt() {
		return notFound("task %s of run %s has made no attempt %d; its newest is %d", name, f.run, attempt, t.brief.GetAttempt())
	}
	return nil
}

// maxNear is how many names an error suggests.
const maxNear = 5

// nearNames suggests the names that are nearest to one that is not known.
func nearNames(name string, known []string) string {
	near := slices.Clone(known)
	slices.SortStableFunc(near, func(a, b string) int { return distance(name, a) - distance(name, b) })
	if len(near) > 0 && distance(name, near[0]) <= max(2, len(name)/3) {
		return fmt.Sprintf("did you mean %s?", near[0])
	}
	more := ""
	if len(near) > maxNear {
		near, more = near[:maxNear], ", ..."
	}
	slices.Sort(near)
	return "its tasks are " + strings.Join(near, ", ") + more
}

// distance is the number of letters to add, drop or change that makes b of a,
// without regard to case.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
