package drill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// containerScript is the command of a container task of a drill. It writes marks to a file of its task, one line each:
//
//	<time in s> <what> <container> <attempt>
//
// start, tick (still alive), term (SIGTERM arrived) and end. It also prints a line for each tick.
const containerScript = `
mark() { echo "$(busybox date +%s) $1 $HOSTNAME $SWITCHYARD_ATTEMPT" >>"/shared/$SWITCHYARD_RUN_ID.$SWITCHYARD_TASK"; }
trap 'mark term; exit 143' TERM
mark start
n=0
while [ "$n" -lt "$TICKS" ]; do
	sleep 0.1
	n=$((n + 1))
	mark tick
	echo "line $n"
done
mark end
echo "by $HOSTNAME"
`

// contained returns a workflow of container tasks. Each of them works for its ticks.
func contained(name string, ticks ...int) definition {
	d := definition{Name: name, Tasks: map[string]taskSpec{}}
	for i, n := range ticks {
		d.Tasks[fmt.Sprintf("t%d", i)] = taskSpec{
			Type:      "container",
			Spec:      map[string]any{"image": engineImage, "pullPolicy": "never", "network": "none", "command": containerScript},
			Env:       map[string]string{"TICKS": strconv.Itoa(n)},
			Resources: map[string]any{"cores": 0},
			// Every kill of the engine costs one retry.
			Retry: map[string]any{"maxRetries": 20, "backoffMs": backoffMs, "backoffMultiplier": 1},
		}
	}
	return d
}

// container returns the definition of the container task that performs a job. Its worker was started by startContainerWorker.
func (y *Cluster) container(j job) taskSpec {
	t := y.task(j)
	t.Type = "container"
	t.Spec = map[string]any{"image": engineImage, "pullPolicy": "never", "network": "none", "command": taskCommand}
	return t
}

// shared returns the folder that is mounted in all containers.
func (y *Cluster) shared() string { return filepath.Join(y.Dir, "shared") }

// startContained starts a cluster with an engine and workers that run containers.
func (y *Cluster) startContained(workers ...string) error {
	if err := os.Mkdir(y.shared(), 0o700); err != nil {
		return err
	}
	if _, err := y.startEngine(); err != nil {
		return err
	}
	if err := y.start(); err != nil {
		return err
	}
	for _, worker := range workers {
		if err := y.startContainerWorker(worker); err != nil {
			return err
		}
	}
	return y.awaitNodes(workers...)
}

// startContainerWorker starts a worker that mounts the folder of the cluster into its containers, and that leaves them to the next
// worker when it is stopped.
func (y *Cluster) startContainerWorker(name string) error {
	return y.startWorker(name, "--shared-dir", y.shared(), "--mount", y.Dir+":"+y.Dir, "--max-parallel", "64", "--on-stop", "keep", "--drain-timeout", "1s")
}

// containerMarks is what the marks show about one container of a task.
type containerMarks struct {
	id      string
	attempt int
	end     time.Time // when it completed its work, or zero
	// after is the number of marks that it wrote after a later container of the task had started.
	after int
}

// containersOf returns the started containers of a task, ordered by start.
func (y *Cluster) containersOf(run, task string) ([]*containerMarks, error) {
	text, err := os.ReadFile(filepath.Join(y.shared(), run+"."+task))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []*containerMarks
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if !strings.HasSuffix(line, "\n") {
			break // an incomplete line, still being written
		}
		if len(f) != 4 {
			return nil, fmt.Errorf("mark %q of %s/%s", line, run, task)
		}
		second, err := strconv.ParseInt(f[0], 10, 64)
		attempt, err2 := strconv.Atoi(f[3])
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("mark %q of %s/%s: %w", line, run, task, err)
		}
		at := time.Unix(second, 0)
		i := slices.IndexFunc(found, func(c *containerMarks) bool { return c.id == f[2] })
		if i < 0 {
			i, found = len(found), append(found, &containerMarks{id: f[2], attempt: attempt})
		}
		c := found[i]
		if f[1] == "end" {
			c.end = at
		}
		if i+1 < len(found) {
			c.after++
		}
	}
	return found, nil
}

// awaitContained waits until n tasks of a run have started a container.
func (y *Cluster) awaitContained(id string, tasks []string, n int) error {
	return y.eventually(fmt.Sprintf("%d containers of %s have started", n, id), func() (bool, error) {
		started := 0
		for _, task := range tasks {
			found, err := y.containersOf(id, task)
			if err != nil {
				return false, err
			}
			if len(found) > 0 {
				started++
			}
		}
		return started >= n, nil
	})
}

// containedFinished waits for the end of a run of container tasks. It checks that each was done once, and that the
// engine has nothing of the run left. repeated counts work that was repeated because the process that would have stored
// its result was killed.
func (y *Cluster) containedFinished(id string) (r *run, repeated int, err error) {
	if r, err = y.awaitEnd(id); err != nil {
		return r, 0, err
	}
	var errs []error
	if r.State != v1.RunCompleted {
		errs = append(errs, fmt.Errorf("run %s is %s: %s", id, r.State, r.Error))
	}
	for name, task := range r.Tasks {
		found, err := y.containersOf(id, name)
		if err != nil {
			return r, 0, err
		}
		var kept, all []*containerMarks
		for _, c := range found {
			if c.after > 0 {
				errs = append(errs, fmt.Errorf("task %s of %s: container %s (attempt %d) worked on after the next one had started (%d marks)", name, id, c.id, c.attempt, c.after))
			}
			if c.end.IsZero() {
				continue
			}
			all = append(all, c)
			e := execution{node: task.Node, end: c.end}
			if other := (execution{node: engineName, end: c.end}); !y.diedWith(e) && !y.diedWith(other) {
				kept = append(kept, c)
			}
		}
		repeated += min(len(all)-len(kept), max(len(all)-1, 0))
		if len(kept) > 1 {
			errs = append(errs, fmt.Errorf("task %s of %s was done %d times, by containers %s and %s", name, id, len(kept), kept[0].id, kept[1].id))
		}
		errs = append(errs, y.judgeOutput(id, name, task, all))
	}
	errs = append(errs, y.eventually("nothing is left of the containers of "+id, func() (bool, error) {
		left, err := y.engine.containers(id)
		return err == nil && len(left) == 0 && len(processesWith("SWITCHYARD_RUN_ID="+id)) == 0, nil
	}))
	return r, repeated, errors.Join(errs...)
}

// judgeOutput checks that a completed task has the output of a container that did its work, in order, as its result and
// in the log. Output that a container prints while its engine is dead is lost, because it comes from the engine.
func (y *Cluster) judgeOutput(id, name string, task runTask, all []*containerMarks) error {
	if task.State != v1.TaskCompleted {
		return nil
	}
	log, err := y.must("runs", "logs", id, name, "--stdout")
	if err != nil {
		return err
	}
	for what, text := range map[string]string{"result": task.Result.Stdout, "log": log} {
		if err := judgeLines(text, all); err != nil {
			return fmt.Errorf("the output of task %s of %s in its %s: %w\n%s", name, id, what, err, text[max(0, len(text)-300):])
		}
	}
	return nil
}

// judgeLines checks that the lines of a container that did its work are in order and unique.
func judgeLines(text string, all []*containerMarks) error {
	before, by := 0, ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); by != "" {
			return fmt.Errorf("%q follows the end", line)
		}
		if id, ok := strings.CutPrefix(line, "by "); ok {
			by = id
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(line, "line "))
		if err != nil || n <= before {
			return fmt.Errorf("%q follows line %d", line, before)
		}
		before = n
	}
	if len(all) == 0 || by != "" && !slices.ContainsFunc(all, func(c *containerMarks) bool { return by == c.id }) {
		return fmt.Errorf("no container that has done its work says so: %q", by)
	}
	return nil
}
