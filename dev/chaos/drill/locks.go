package drill

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// killHolders kills gateway, server and a worker one after the other while tasks of several runs compete for the same
// mutex and semaphore, and while runs of one workflow compete for its concurrency limit.
func killHolders(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	var ids []string
	var mutex, semaphore []place
	for i := range 3 {
		d := definition{Name: fmt.Sprintf("locks-%d", i), Tasks: map[string]taskSpec{}}
		for k := range 3 {
			d.Tasks[fmt.Sprintf("m%d", k)] = y.task(job{ticks: 3, mutex: "drill"})
			d.Tasks[fmt.Sprintf("s%d", k)] = y.task(job{ticks: 3, semaphore: map[string]any{"name": "drill-two", "limit": 2}})
		}
		id, err := y.submit(d)
		if err != nil {
			return err
		}
		ids = append(ids, id)
		for k := range 3 {
			mutex = append(mutex, place{id, fmt.Sprintf("m%d", k)})
			semaphore = append(semaphore, place{id, fmt.Sprintf("s%d", k)})
		}
	}
	var turns []string
	for range 4 {
		d := y.crowd("turn", 1, job{ticks: 2})
		d.Tasks["after"] = y.task(job{ticks: 2, after: []string{"t0"}})
		d.Concurrency = map[string]any{"maxRuns": 1, "strategy": "queue"}
		id, err := y.submit(d)
		if err != nil {
			return err
		}
		turns = append(turns, id)
	}
	for i, fault := range []func() error{
		func() error { return errors.Join(y.kill(gatewayName(0)), y.restartGateway(0)) },
		func() error { return errors.Join(y.kill(serverName), y.restartServer()) },
		func() error { return errors.Join(y.kill("a"), y.startWorker("a")) },
	} {
		if err := y.awaitHeld(mutex, 2*i+1); err != nil {
			return err
		}
		if err := fault(); err != nil {
			return err
		}
	}
	for _, id := range append(slices.Clone(ids), turns...) {
		if _, err := y.finished(id); err != nil {
			return err
		}
	}
	return errors.Join(y.atMost(1, mutex, "mutex"), y.atMost(2, semaphore, "semaphore"), y.inTurn(1, turns))
}

// place names a task of a run.
type place struct{ run, task string }

// awaitHeld waits until n of the tasks have started.
func (y *Cluster) awaitHeld(places []place, n int) error {
	return y.eventually(fmt.Sprintf("%d tasks have had their lock", n), func() (bool, error) {
		begun := 0
		for _, p := range places {
			executions, err := y.executions(p.run, p.task)
			if err != nil {
				return false, err
			}
			begun += min(len(executions), 1)
		}
		return begun >= n, nil
	})
}

// atMost checks that at most limit executions of the tasks were alive at once.
func (y *Cluster) atMost(limit int, places []place, what string) error {
	var spans []span
	for _, p := range places {
		executions, err := y.executions(p.run, p.task)
		if err != nil {
			return err
		}
		for _, e := range executions {
			spans = append(spans, span{e.start, e.lastSign, fmt.Sprintf("%s of %s, claim %d on %s", p.task, p.run, e.claim, e.node)})
		}
	}
	most, who := crowded(spans)
	if most > limit {
		return fmt.Errorf("%d tasks had a %s of %d at once: %s", most, what, limit, who)
	}
	return nil
}

// inTurn checks that at most limit runs, from task t0 to task after, were active at once.
func (y *Cluster) inTurn(limit int, ids []string) error {
	var spans []span
	for _, id := range ids {
		whole := span{who: id}
		for _, task := range []string{"t0", "after"} {
			executions, err := y.executions(id, task)
			if err != nil {
				return err
			}
			for _, e := range executions {
				if whole.from.IsZero() || e.start.Before(whole.from) {
					whole.from = e.start
				}
				if e.lastSign.After(whole.to) {
					whole.to = e.lastSign
				}
			}
		}
		spans = append(spans, whole)
	}
	if most, who := crowded(spans); most > limit {
		return fmt.Errorf("%d runs of a workflow with a limit of %d were running at once: %s", most, limit, who)
	}
	return nil
}

// span is a time in which something was certainly alive.
type span struct {
	from, to time.Time
	who      string
}

// crowded returns the largest number of spans that overlap, and their names.
func crowded(spans []span) (most int, who []string) {
	for _, s := range spans {
		var names []string
		for _, other := range spans {
			if !other.from.After(s.from) && other.to.After(s.from) {
				names = append(names, other.who)
			}
		}
		if len(names) > most {
			most, who = len(names), names
		}
	}
	return most, who
}
