package drill

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

const (
	// grownHeartbeat is the heartbeat time-out with which attempts begin whose leases grow. It is short, so that they soon use a raise.
	grownHeartbeat = 1500 * time.Millisecond
	// grownLease is the time-out to which they grow. Their leases are then longer than the minute for which a run waits for any
	// detached attempt.
	grownLease = 100 * time.Second
	// grownAfter is the age at which they have this time-out, which is a quarter of the age.
	grownAfter = 4 * grownLease
)

// grownLeases cuts off a worker whose tasks have leases of more than a minute. One run continues as new meanwhile; another one has
// just detached its attempts; others are terminated, and ended by force, and retried. No task starts elsewhere before its old
// processes have ended by their lease.
func grownLeases(y *Cluster) error {
	if err := y.start("a"); err != nil {
		return err
	}
	c, err := y.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	const continued, detached, terminated, forced = "continued", "detached", "terminated", "forced"
	gate := y.gate("work")
	ids, tasks := map[string]string{}, []string{}
	for _, name := range []string{continued, detached, terminated, forced} {
		d := y.crowd(name, 2, job{gate: gate, tree: true, deaf: true, tick: 0.3})
		tasks = namesOf(d)
		if ids[name], err = y.submitGrowing(d, grownHeartbeat, grownLease); err != nil {
			return err
		}
		if err := y.awaitStarted(ids[name], tasks, "a", len(tasks)); err != nil {
			return err
		}
	}
	if err := y.startWorkers("b"); err != nil {
		return err
	}
	if err := y.pause(grownAfter + 8*grownHeartbeat); err != nil { // a raise is used after a while
		return err
	}
	for name, id := range ids {
		timeouts, err := y.heartbeatTimeouts(c, id)
		if err != nil {
			return err
		}
		if all := slices.Collect(maps.Values(timeouts)); !slices.Equal(all, slices.Repeat([]time.Duration{grownLease}, len(tasks))) {
			return fmt.Errorf("the heartbeat time-outs of run %s are %s, not %s", name, all, grownLease)
		}
	}
	if err := y.cutDetached(c, ids[detached]); err != nil {
		return err
	}
	cut := time.Now()
	if err := c.TerminateWorkflow(y.ctx, ids[terminated], "", "chaos"); err != nil {
		return err
	}
	if _, err := y.must("runs", "cancel", "--force", ids[forced]); err != nil {
		return err
	}
	for _, name := range []string{terminated, forced} {
		if _, err := y.must("runs", "retry", ids[name]); err != nil {
			return err
		}
	}
	if err := y.fillHistory(c, ids[continued]); err != nil {
		return err
	}
	for name, id := range ids {
		if err := y.awaitStarted(id, tasks, "b", len(tasks)); err != nil {
			return err
		}
		if err := y.endedByGrownLease(name, id, tasks, cut); err != nil {
			return err
		}
	}
	y.link("a", "temporal").Restore()
	y.link("a", "gateway").Restore()
	for name, id := range ids {
		if name == continued || name == detached {
			if err := y.hasContinued(id); err != nil {
				return err
			}
		}
		if err := y.backAgain("a", id, gate, "b"); err != nil {
			return err
		}
	}
	return nil
}

// cutDetached makes a run continue as new and cuts worker a off when its attempts are detached, before the next execution can
// reattach them.
func (y *Cluster) cutDetached(c client.Client, id string) error {
	if err := y.fillHistory(c, id); err != nil {
		return err
	}
	if err := y.freeze("a"); err != nil {
		return err
	}
	err := y.eventually("run "+id+" has its attempts detached", func() (bool, error) { return y.hasActivity(c, id, names.DetachActivity) })
	if err != nil {
		return err
	}
	if err := errors.Join(y.freeze(gatewayName(0)), y.thaw("a")); err != nil {
		return err
	}
	err = y.eventually("the attempts of run "+id+" are detached", func() (bool, error) {
		isAttended, err := y.hasActivity(c, id, names.ExecuteActivity)
		return !isAttended, err
	})
	if err != nil {
		return err
	}
	y.link("a", "temporal").Cut()
	y.link("a", "gateway").Cut()
	return y.thaw(gatewayName(0))
}

// fillHistory sends signals to a run until it must continue as new.
func (y *Cluster) fillHistory(c client.Client, id string) error {
	signals := limits.Run{}.WithDefaults().HardSignals + 1
	senders, ctx := errgroup.WithContext(y.ctx)
	senders.SetLimit(32)
	for range signals {
		senders.Go(func() error { return c.SignalWorkflow(ctx, id, "", "chaos", nil) })
	}
	return senders.Wait()
}

// endedByGrownLease checks that the first execution of each task was asked to end by a lease as long as a raised one, and reports when
// it ended.
func (y *Cluster) endedByGrownLease(name, id string, tasks []string, cut time.Time) error {
	var errs []error
	for _, task := range tasks {
		executions, err := y.executions(id, task)
		if err != nil {
			return err
		}
		first, second := executions[0], executions[1]
		y.report("%s: %s got SIGTERM %.1f s after the cut, ended after %.1f s, and started elsewhere after %.1f s",
			name, task, first.term.Sub(cut).Seconds(), first.lastSign.Sub(cut).Seconds(), second.start.Sub(cut).Seconds())
		if first.term.Sub(cut) < grownLease/2 {
			errs = append(errs, fmt.Errorf("task %s of %s was not ended by a lease that had grown: %+v", task, id, executions))
		}
	}
	return errors.Join(errs...)
}
