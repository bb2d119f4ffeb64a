package drill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// storeAway takes the store of the gateway away while runs are at every stage that reads or
// writes it: they are submitted, fan out, evaluate conditions, retry, end, and end as a child.
// Each waits and says why; nothing fails, nothing is done twice, and nothing is missing.
func storeAway(y *Yard) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	gate := y.gate("stage")
	output := `printf 'word=yes\nfill=%040000d\n' 0 > "$SWITCHYARD_OUTPUT"`
	conditions := y.crowd("conditions", 1, job{last: output})
	conditions.Tasks["gate"] = y.task(job{gate: gate})
	after := y.task(job{after: []string{"t0", "gate"}})
	after.Condition = "parent.t0.output.word == 'yes'"
	conditions.Tasks["after"] = after
	fanOut := definition{Name: "fan-out", Tasks: map[string]taskSpec{
		"gate": y.task(job{gate: gate}), "each": y.task(job{after: []string{"gate"}, instances: 20}),
		"large": y.task(job{after: []string{"each"}, last: output}), "last": y.task(job{after: []string{"large"}}),
	}}
	parent := y.parent("parent", job{gate: gate})
	end := y.crowd("end", 1, job{gate: gate})
	stages := []struct {
		definition
		first string // task that runs when the store goes away
	}{{conditions, "gate"}, {fanOut, "gate"}, {end, "t0"}, {parent, ""}}
	var ids []string
	for _, stage := range stages {
		id, err := y.submit(stage.definition)
		if err != nil {
			return err
		}
		ids = append(ids, id)
		if stage.first != "" {
			if err := y.awaitStarted(id, []string{stage.first}, "", 1); err != nil {
				return err
			}
		}
	}
	var child string
	err := y.eventually("the child runs, and what the condition reads is there", func() (bool, error) {
		r, err := y.get(ids[3])
		if err != nil {
			return false, err
		}
		read, err := y.get(ids[0])
		if err != nil {
			return false, err
		}
		child = r.Tasks["child"].ChildRun
		n, err := y.started(child, []string{"work"}, "")
		return n == 1 && read.Tasks["t0"].State == "completed", err
	})
	if err != nil {
		return err
	}

	gone := time.Now()
	if err := os.Rename(y.storeDir(), y.storeDir()+"-away"); err != nil {
		return err
	}
	if err := y.open(gate); err != nil {
		return err
	}
	late, err := y.submit(y.crowd("late", 2, job{ticks: 1}))
	if err != nil {
		return err
	}
	told := y.eventually("runs say that they wait for the store", func() (bool, error) {
		for _, id := range []string{ids[0], ids[2], child} {
			r, err := y.get(id)
			if err != nil || ended(r.State) {
				return false, err
			}
			if !strings.HasPrefix(r.Problem, "waits to ") {
				return false, nil
			}
		}
		return true, nil
	})
	if told == nil {
		told = y.pause(storeOutage - time.Since(gone))
	}
	if err := errors.Join(told, os.Rename(y.storeDir()+"-away", y.storeDir())); err != nil {
		return err
	}
	y.report("the store was away for %.1f s", time.Since(gone).Seconds())

	for _, id := range append(ids, late) {
		r, err := y.finished(id)
		if err != nil {
			return err
		}
		if r.Problem != "" {
			return fmt.Errorf("run %s has ended and still %s", id, r.Problem)
		}
		for name, task := range r.Tasks {
			if task.Attempt != 0 {
				return fmt.Errorf("task %s of %s took %d attempts", name, id, task.Attempt+1)
			}
		}
	}
	return y.oneChild("parent", ids[3], child)
}

// storeOutage is how long the store is away at least.
const storeOutage = 5 * time.Second

func (y *Yard) storeDir() string { return filepath.Join(y.Dir, "store") }
