package drill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// storeAway makes the folder of the store unavailable.
func storeAway(y *Cluster) error {
	return y.storeOutage(y.hideStore, y.showStore)
}

// storeErrors makes a bucket reply to every request with an error.
func storeErrors(y *Cluster) error {
	b, err := y.startBucket()
	if err != nil {
		return err
	}
	return y.storeOutage(
		func() error { b.setFault(refuse); return nil },
		func() error { b.setFault(nil); return nil })
}

// storeSlow makes a bucket respond later than any client waits.
func storeSlow(y *Cluster) error {
	b, err := y.startBucket()
	if err != nil {
		return err
	}
	return y.storeOutage(
		func() error { b.setFault(delay); return nil },
		func() error { b.setFault(nil); return nil })
}

// outageRuns holds the IDs of runs that are each about to read or write the store at another stage.
type outageRuns struct {
	conditions, fanOut, end, parent, child, long, failed string
}

// storeOutage makes the store unavailable while runs are at every stage that uses it: they are submitted, fan out,
// evaluate conditions, continue as new, end, end as a child, and are retried. Each run waits and reports why; no task
// fails, nothing is done twice, and no value is missing.
func (y *Cluster) storeOutage(begin, end func() error) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	gate := y.gate("stage")
	runs, err := y.startOutageRuns(gate)
	if err != nil {
		return err
	}
	gone := time.Now()
	if err := begin(); err != nil {
		return err
	}
	retried := make(chan error, 1)
	go func() { retried <- y.retryInOutage(runs.failed) }()
	if err := y.open(gate); err != nil {
		return errors.Join(err, <-retried)
	}
	late, err := y.submit(y.crowd("late", 2, job{ticks: 1}))
	if err != nil {
		return errors.Join(err, <-retried)
	}
	told := y.awaitProblems(runs.conditions, runs.fanOut, runs.end, runs.child, runs.long)
	if told == nil {
		told = y.pause(y.Scale.Outage - time.Since(gone))
	}
	if err := errors.Join(told, end(), <-retried); err != nil {
		return err
	}
	y.report("the store was away for %.1f s", time.Since(gone).Seconds())

	for _, id := range []string{runs.conditions, runs.fanOut, runs.end, runs.parent, runs.long, runs.failed, late} {
		if err := y.survivedOutage(id); err != nil {
			return err
		}
	}
	if err := errors.Join(y.isGeneration(runs.failed, 1), y.hasContinued(runs.long), y.logIsWhole(runs.end, "t0"), y.logIsWhole(late, "t0")); err != nil {
		return err
	}
	return y.oneChild("parent", runs.parent, runs.child)
}

// startOutageRuns starts the runs and waits until each is at the stage that the outage must hit.
func (y *Cluster) startOutageRuns(gate string) (*outageRuns, error) {
	output := `printf 'word=yes\nfill=%040000d\n' 0 > "$SWITCHYARD_OUTPUT"`
	items := `printf '{"items": ["%01000d", 1, 2, 3, 4, 5, 6, 7, 8, 9], "fill": "%040000d"}' 0 0 > "$SWITCHYARD_OUTPUT"`
	conditions := y.crowd("conditions", 1, job{last: output})
	conditions.Tasks["gate"] = y.task(job{gate: gate})
	after := y.task(job{after: []string{"t0", "gate"}})
	after.Condition = "parent.t0.output.word == 'yes'"
	conditions.Tasks["after"] = after
	// The fan-out list is too large to fit into a result message.
	each := y.task(job{after: []string{"items", "gate"}})
	each.ForEach = "parent.items.output.items"
	fanOut := definition{Name: "fan-out", Tasks: map[string]taskSpec{
		"items": y.task(job{last: items}), "gate": y.task(job{gate: gate}), "each": each,
		"large": y.task(job{after: []string{"each"}, last: output}), "last": y.task(job{after: []string{"large"}}),
	}}
	// The instances print enough to exceed the history limit at which the run continues as new.
	long := definition{Name: "long", Tasks: map[string]taskSpec{
		"each": y.task(job{instances: noisyInstances, last: noise}),
		"gate": y.task(job{gate: gate, after: []string{"each"}}), "after": y.task(job{after: []string{"gate"}}),
	}}
	failed := y.crowd("failed", 1, job{once: y.gate("once")})
	failed.Tasks["t0"].Retry["maxRetries"] = 0

	var runs outageRuns
	for _, stage := range []struct {
		id *string
		definition
		first string // task that runs when the outage begins, or "" to wait for none
	}{
		{&runs.long, long, "gate"}, {&runs.conditions, conditions, "gate"}, {&runs.fanOut, fanOut, "gate"},
		{&runs.end, y.crowd("end", 1, job{gate: gate}), "t0"}, {&runs.parent, y.parent("parent", job{gate: gate}), ""}, {&runs.failed, failed, ""},
	} {
		var err error
		if *stage.id, err = y.submit(stage.definition); err != nil {
			return nil, err
		}
		if stage.first != "" {
			if err := y.awaitStarted(*stage.id, []string{stage.first}, "", 1); err != nil {
				return nil, err
			}
		}
	}
	if r, err := y.awaitEnd(runs.failed); err != nil || r.State != v1.RunFailed {
		return nil, errors.Join(err, fmt.Errorf("run %s has not failed", runs.failed))
	}
	return &runs, y.eventually("the child runs, and what the condition and the fan-out read is there", func() (bool, error) {
		r, err := y.get(runs.parent)
		if err != nil {
			return false, err
		}
		read, err := y.get(runs.conditions)
		if err != nil {
			return false, err
		}
		over, err := y.get(runs.fanOut)
		if err != nil {
			return false, err
		}
		runs.child = r.Tasks["child"].ChildRun
		n, err := y.started(runs.child, []string{"work"}, "")
		return n == 1 && read.Tasks["t0"].State == v1.TaskCompleted && over.Tasks["items"].State == v1.TaskCompleted, err
	})
}

// A control character takes six bytes in a history.
const (
	noisyInstances = 120
	noise          = `head -c 24000 /dev/zero | tr '\0' '\1' >&2`
)

// awaitProblems waits until runs report that they wait for the store.
func (y *Cluster) awaitProblems(ids ...string) error {
	silent := ""
	err := y.eventually("runs say that they wait for the store", func() (bool, error) {
		for _, id := range ids {
			r, err := y.get(id)
			if err != nil || v1.IsRunTerminal(r.State) {
				return false, errors.Join(err, fmt.Errorf("run %s is %s in the outage", id, r.State))
			}
			if !r.waitsForStore() {
				silent = id
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil && silent != "" {
		err = fmt.Errorf("%w; run %s does not", err, silent)
		if r, getErr := y.get(silent); getErr == nil {
			err = fmt.Errorf("%w: %+v", err, r)
		}
	}
	return err
}

// waitsForStore reports whether a run says that it waits for the store, or one of its tasks that the nodes do.
func (r *run) waitsForStore() bool {
	if strings.HasPrefix(r.Problem, "waits to ") {
		return true
	}
	for _, task := range r.Tasks {
		if task.State == v1.TaskQueued && strings.Contains(task.Error, "its store") {
			return true
		}
	}
	return false
}

// retryInOutage retries a run. If the outage outlasts the call, the call must report that.
func (y *Cluster) retryInOutage(id string) error {
	a, err := y.command(0, "runs", "retry", id)
	if err != nil || a.code == 0 {
		return err
	}
	if a.code != 3 || !strings.Contains(a.stderr, "the store did not answer") {
		return fmt.Errorf("the retry of %s exits with %d: %s", id, a.code, a.stderr)
	}
	_, err = y.must("runs", "retry", id)
	return err
}

// survivedOutage waits for the end of a run, and checks that each of its tasks took one attempt.
func (y *Cluster) survivedOutage(id string) error {
	r, err := y.finished(id)
	if err != nil {
		return err
	}
	if r.Problem != "" {
		err = fmt.Errorf("run %s has ended and still %s", id, r.Problem)
	}
	for name, task := range r.Tasks {
		if task.Attempt != 0 {
			err = errors.Join(err, fmt.Errorf("task %s of %s took %d attempts", name, id, task.Attempt+1))
		}
	}
	return err
}

func (y *Cluster) isGeneration(id string, want int) error {
	r, err := y.get(id)
	if err == nil && r.Generation != want {
		err = fmt.Errorf("run %s is in generation %d, not %d", id, r.Generation, want)
	}
	return err
}

// hasContinued checks that a run has continued as new.
func (y *Cluster) hasContinued(id string) error {
	c, err := y.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	desc, err := c.DescribeWorkflowExecution(y.ctx, id, "")
	if err != nil {
		return err
	}
	info := desc.GetWorkflowExecutionInfo()
	if info.GetFirstRunId() == info.GetExecution().GetRunId() {
		return fmt.Errorf("run %s has ended in its first execution, after %d events and %d bytes of history",
			info.GetExecution().GetWorkflowId(), info.GetHistoryLength(), info.GetHistorySizeBytes())
	}
	return nil
}

// logIsWhole waits until the log of a task is complete in the store, after its worker has uploaded it.
func (y *Cluster) logIsWhole(id, task string) error {
	r, err := y.get(id)
	if err != nil {
		return err
	}
	want, got := r.Tasks[task].Result.Stdout, ""
	err = y.eventually("the log of "+id+" is whole", func() (bool, error) {
		got, err = y.must("runs", "logs", id, task, "--stdout")
		return got == want, err
	})
	if err != nil {
		err = fmt.Errorf("%w; it is %q, and the result %q", err, got, want)
	}
	return err
}

func (y *Cluster) storeDir() string { return filepath.Join(y.Dir, "store") }

func (y *Cluster) hideStore() error { return os.Rename(y.storeDir(), y.storeDir()+"-away") }

func (y *Cluster) showStore() error { return os.Rename(y.storeDir()+"-away", y.storeDir()) }
