package drill

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// finallyTasks are the tasks of a run in the order in which they run; those from firstFinally on are in `finally`.
var finallyTasks = []string{"a", "b", "c", "d", "e"}

const firstFinally = 3

// How the tasks of a run end, before `finally`.
const (
	tasksComplete  = "completed"
	tasksFail      = "failed"    // c fails
	tasksCancelled = "cancelled" // a cancellation arrives while b runs
	finallyEnded   = "ended"     // as tasksCancelled, and another cancellation arrives while d runs
)

// finallyPoint is a point of a run at which a member of the cluster is killed.
type finallyPoint struct {
	end   string
	task  int           // the task that runs at the kill; -1 if the run is submitted at the kill
	lead  time.Duration // how long before the kill the task may end; 0 means only after it
	order bool          // the last cancellation of the run is sent at the kill, and not before
}

func (p finallyPoint) String() string {
	switch {
	case p.task < 0:
		return "submitted"
	case p.order:
		return fmt.Sprintf("%s in %s %s before", p.end, finallyTasks[p.task], p.lead)
	case p.lead > 0:
		return fmt.Sprintf("%s after %s by %s", p.end, finallyTasks[p.task], p.lead)
	}
	return fmt.Sprintf("%s in %s", p.end, finallyTasks[p.task])
}

// gaps are the times from the moment at which a task may end to a kill between it and the next one.
var gaps = []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond}

// finallyPoints returns the points: in each task, and between each and the next one.
func finallyPoints() []finallyPoint {
	points := []finallyPoint{{end: tasksComplete, task: -1}}
	for task := range finallyTasks {
		points = append(points, finallyPoint{end: tasksComplete, task: task})
		for _, lead := range gaps {
			points = append(points, finallyPoint{end: tasksComplete, task: task, lead: lead})
		}
	}
	for _, lead := range gaps {
		points = append(points, finallyPoint{end: tasksFail, task: 2, lead: lead}, finallyPoint{end: tasksCancelled, task: 1, lead: lead, order: true})
	}
	for task := firstFinally; task < len(finallyTasks); task++ {
		for _, end := range []string{tasksFail, tasksCancelled} {
			points = append(points, finallyPoint{end: end, task: task}, finallyPoint{end: end, task: task, lead: gaps[1]})
		}
	}
	return append(points, finallyPoint{end: finallyEnded, task: firstFinally, lead: gaps[0], order: true}, finallyPoint{end: finallyEnded, task: firstFinally, lead: gaps[1], order: true})
}

// finallyRun is a run that is at a point when a member is killed.
type finallyRun struct {
	finallyPoint
	id, name string
}

// killFinally kills the worker, and then the server with its gateway, while runs are at every point of their way to the end of
// `finally`. In each of them, `finally` runs once to its end, after the other tasks, and the run keeps its first reason.
func killFinally(y *Cluster) error {
	if err := y.startDev(); err != nil {
		return err
	}
	worker := func() error { return y.startWorker("a", "--max-parallel", "64") }
	if err := errors.Join(worker(), y.awaitNodes("a")); err != nil {
		return err
	}
	for _, victim := range []struct {
		name  string
		start func() error
	}{{"a", worker}, {devName, y.restartDev}} {
		began := time.Now()
		n, err := y.finallyRound(victim.name, victim.start)
		if err != nil {
			return fmt.Errorf("after the kill of %s: %w", victim.name, err)
		}
		y.report("%d runs with finally, at every point when %s is killed: %.0f s", n, victim.name, time.Since(began).Seconds())
	}
	return nil
}

// finallyRound brings a run to each point, kills a member, starts it again, and checks how the runs end.
func (y *Cluster) finallyRound(victim string, start func() error) (int, error) {
	var runs []*finallyRun
	for i, p := range finallyPoints() {
		r := &finallyRun{finallyPoint: p, name: fmt.Sprintf("%s-%d", victim, i)}
		if err := y.bring(r); err != nil {
			return 0, fmt.Errorf("%s: %w", r, err)
		}
		runs = append(runs, r)
	}
	// The orders and the first submission reach a gateway that may die while it serves them.
	struck := time.Now().Add(2 * gaps[len(gaps)-1])
	acted := make(chan error, len(runs))
	for _, r := range runs {
		go func() {
			err := y.pause(time.Until(struck) - r.lead)
			if err == nil {
				err = y.act(r)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", r, err)
			}
			acted <- err
		}()
	}
	err := errors.Join(y.pause(time.Until(struck)), y.kill(victim), y.pause(y.Scale.Short), start())
	for range runs {
		err = errors.Join(err, <-acted)
	}
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, r := range runs {
		for _, task := range finallyTasks {
			errs = append(errs, y.open(r.gate(y, task)))
		}
	}
	for _, r := range runs {
		if err := y.checkFinally(r); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r, err))
		}
	}
	return len(runs), errors.Join(errs...)
}

func (r *finallyRun) isCancelled() bool { return r.end == tasksCancelled || r.end == finallyEnded }

func (r *finallyRun) gate(y *Cluster, task string) string { return y.gate(r.name + "-" + task) }

// bring submits a run and waits until it is at its point.
func (y *Cluster) bring(r *finallyRun) error {
	if r.task < 0 {
		return nil
	}
	if err := y.submitFinally(r); err != nil {
		return err
	}
	for i, task := range finallyTasks[:r.task+1] {
		if r.isCancelled() && i == 2 {
			continue // it has been cancelled with b
		}
		if err := y.awaitStarted(r.id, []string{task}, "", 1); err != nil {
			return err
		}
		switch {
		case i == r.task:
			return nil
		case i == 1 && r.isCancelled():
			if err := y.cancel(r.id, "first"); err != nil {
				return err
			}
		default:
			if err := y.open(r.gate(y, task)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (y *Cluster) submitFinally(r *finallyRun) (err error) {
	d := definition{Name: "finally", Tasks: map[string]taskSpec{}, Finally: map[string]taskSpec{}}
	for i, name := range finallyTasks {
		j := job{gate: r.gate(y, name), tick: 0.3}
		if i != 0 && i != firstFinally {
			j.after = finallyTasks[i-1 : i]
		}
		isFailing := name == "c" && r.end == tasksFail
		if isFailing {
			j.fails = 100
		}
		t := y.task(j)
		if i < firstFinally {
			d.Tasks[name] = t
		} else {
			d.Finally[name] = t
		}
		if isFailing {
			t.Retry["maxRetries"] = 1
		}
	}
	r.id, err = y.submit(d)
	return err
}

// act lets a run leave its point.
func (y *Cluster) act(r *finallyRun) error {
	switch {
	case r.task < 0:
		return y.submitFinally(r)
	case r.order && r.end == finallyEnded:
		return y.cancel(r.id, "second")
	case r.order:
		return y.cancel(r.id, "first")
	case r.lead > 0:
		return y.open(r.gate(y, finallyTasks[r.task]))
	}
	return nil
}

// cancel cancels a run. It sends the request again, with its ID, until it is answered.
func (y *Cluster) cancel(id, reason string) error {
	runs := switchyardv1connect.NewRunServiceClient(http.DefaultClient, y.gateways[0])
	request := &v1.CancelRunRequest{Id: id, Reason: reason, RequestId: uuid.NewString()}
	return y.eventually("run "+id+" is cancelled", func() (bool, error) {
		_, err := runs.CancelRun(y.ctx, connect.NewRequest(request))
		if code := connect.CodeOf(err); err != nil && code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded {
			return false, err
		}
		return err == nil, nil
	})
}

// checkFinally checks how a run has ended, and that `finally` ran once, after all other tasks.
func (y *Cluster) checkFinally(r *finallyRun) error {
	end, err := y.awaitEnd(r.id)
	if err != nil {
		return err
	}
	v, err := y.judge(end)
	if err != nil {
		return err
	}
	want := r.outcome()
	errs := []error{v.err()}
	if end.State != want.state || end.Reason != want.reason || !strings.Contains(end.Error, want.error) {
		errs = append(errs, fmt.Errorf("run %s is %s (%s): %s; want %s (%s): %s", r.id, end.State, end.Reason, end.Error, want.state, want.reason, want.error))
	}
	var last time.Time
	for i, name := range finallyTasks {
		executions, err := y.executions(r.id, name)
		if err != nil {
			return err
		}
		if state := end.Tasks[name].State; state != want.tasks[i] {
			errs = append(errs, fmt.Errorf("task %s of %s is %s after %d starts; want %s", name, r.id, state, len(executions), want.tasks[i]))
		}
		if len(executions) == 0 {
			continue
		}
		if i >= firstFinally && executions[0].start.Before(last) {
			errs = append(errs, fmt.Errorf("task %s of %s started %s before the end of what comes before it", name, r.id, last.Sub(executions[0].start)))
		}
		for _, e := range executions {
			if e.lastSign.After(last) {
				last = e.lastSign
			}
		}
	}
	return errors.Join(errs...)
}

// finallyOutcome is how a run is to end.
type finallyOutcome struct {
	state, reason, error string
	tasks                []string // the states of finallyTasks
}

func (r *finallyRun) outcome() finallyOutcome {
	const done, stopped = v1.TaskCompleted, v1.TaskCancelled
	switch r.end {
	case tasksFail:
		return finallyOutcome{v1.RunFailed, v1.ReasonTaskFailed, `task "c" failed`, []string{done, done, v1.TaskDeadLetter, done, done}}
	case tasksCancelled:
		return finallyOutcome{v1.RunCancelled, v1.ReasonCancelled, "first", []string{done, stopped, stopped, done, done}}
	case finallyEnded:
		return finallyOutcome{v1.RunCancelled, v1.ReasonCancelled, "first", []string{done, stopped, stopped, stopped, stopped}}
	}
	return finallyOutcome{v1.RunCompleted, "", "", []string{done, done, done, done, done}}
}
