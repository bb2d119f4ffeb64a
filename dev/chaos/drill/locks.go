package drill

import (
	"fmt"
	"time"
)

// place names a task of a run.
type place struct{ run, task string }

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
