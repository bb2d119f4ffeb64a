package drill

import (
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// killFinal kills tasks on an unreachable node: the node is cut off, and the control process dies after it has recorded
// the kill, or during the request. The node reports late. No task starts after its kill.
func killFinal(y *Cluster) error {
	if err := y.start("a"); err != nil {
		return err
	}
	gate := y.gate("never")
	id, tasks, err := y.runOn("a", y.crowd("killed", 3, job{gate: gate}))
	if err != nil {
		return err
	}
	if err := y.startWorkers("b"); err != nil {
		return err
	}
	killed := map[string]time.Time{}
	y.link("a", "temporal").Cut()
	if _, err := y.must("runs", "kill", id, tasks[0]); err != nil {
		return err
	}
	killed[tasks[0]] = time.Now()
	if err := y.kill(gatewayName(0)); err != nil {
		return err
	}
	if err := y.restartGateway(0); err != nil {
		return err
	}
	if err := y.killDuring("runs", "kill", id, tasks[1]); err != nil {
		return err
	}
	for _, task := range tasks[1:] {
		if err := y.killTask(id, task); err != nil {
			return err
		}
		killed[task] = time.Now()
	}
	r, err := y.awaitEnd(id)
	if err != nil {
		return err
	}
	y.link("a", "temporal").Restore()
	if err := y.awaitNodes("a"); err != nil { // the node has reported
		return err
	}
	for _, task := range tasks {
		executions, err := y.executions(id, task)
		if err != nil {
			return err
		}
		last := executions[len(executions)-1]
		if t := r.Tasks[task]; t.State != v1.TaskKilled || last.start.After(killed[task]) {
			return fmt.Errorf("task %s of %s is %s; its last execution started %s after it was killed", task, id, t.State, last.start.Sub(killed[task]))
		}
	}
	if t := r.Tasks[tasks[0]]; t.Attempt != 0 {
		return fmt.Errorf("task %s of %s, which was killed in attempt 0, is in attempt %d", tasks[0], id, t.Attempt)
	}
	return y.unchanged(r)
}

// killTask kills a task unless it is already killed.
func (y *Cluster) killTask(id, task string) error {
	_, err := y.must("runs", "kill", id, task)
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), "being killed already") {
		return nil
	}
	r, getErr := y.get(id)
	if getErr == nil && r.Tasks[task].State == v1.TaskKilled {
		return nil
	}
	return errors.Join(err, getErr)
}
