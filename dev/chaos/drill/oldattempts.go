package drill

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// ageScale is how much faster attempts age at another scale than full.
const ageScale = 10

// aged returns a duration at the scale of the cluster. Attempts may age faster there.
func (y *Cluster) aged(d time.Duration) time.Duration {
	if y.Scale.Name != Full.Name {
		return d / ageScale
	}
	return d
}

// cohort is a run with tasks of one age.
type cohort struct {
	id    string
	tasks []string
	age   string
	// survives is the longest outage that its tasks survive.
	survives time.Duration
}

// oldAttempts stops Temporal for 5 s, for 30 s, and for 5 min under shell tasks, containers, an agent and a machine that are 40 min,
// 6 min and 1 s old. Tasks continue if much would be lost with them: only the youngest end in the second outage, and only the oldest
// do not in the third. The others start again when their lease is over. The machine always continues. At last, a worker is stopped and leaves its containers to the next one,
// which never comes.
func oldAttempts(y *Cluster) error {
	if err := y.startContained("a", "b"); err != nil {
		return err
	}
	if err := y.startModel("a", "b"); err != nil {
		return err
	}
	machines := &sessionDrill{cluster: y, count: 1}
	if err := machines.startMachines(); err != nil {
		return err
	}
	gate := y.gate("work")
	var cohorts []*cohort
	for _, of := range []struct {
		cohort
		waits              time.Duration // until the next one starts
		shells, containers int
		hasAgent           bool
	}{
		{cohort{age: "40min", survives: 5 * time.Minute}, 34 * time.Minute, 17, 2, false},
		{cohort{age: "6min", survives: 30 * time.Second}, 6 * time.Minute, 17, 2, true},
		{cohort{age: "1s", survives: 5 * time.Second}, time.Second, 16, 1, false},
	} {
		d := y.crowd("aged-"+of.age, of.shells, job{gate: gate, tick: 0.3})
		for i := range of.containers {
			d.Tasks[fmt.Sprintf("container%d", i)] = y.container(job{gate: gate, tick: 0.3})
		}
		if of.hasAgent {
			d.Tasks["agent"] = y.agent(job{gate: gate, tick: 0.3})
		}
		c := &of.cohort
		id, err := y.submitGrowing(d, y.aged(15*time.Second), y.aged(10*time.Minute))
		if err != nil {
			return err
		}
		c.id, c.tasks, cohorts = id, namesOf(d), append(cohorts, c)
		if err := y.awaitStarted(id, c.tasks, "", len(c.tasks)); err != nil {
			return err
		}
		if err := y.pause(y.aged(of.waits)); err != nil {
			return err
		}
	}
	for _, length := range []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute} {
		// The leases are shorter for a while after an outage, in which the server may have lost the newest heartbeats.
		if err := y.pause(y.aged(time.Minute)); err != nil {
			return err
		}
		if err := y.outage(length, cohorts); err != nil {
			return fmt.Errorf("after an outage of %s: %w", length, err)
		}
		if err := machines.checkMachines(); err != nil {
			return fmt.Errorf("after an outage of %s: %w", length, err)
		}
	}
	if err := machines.stopMachines(); err != nil {
		return err
	}
	if err := y.leaveForGood(cohorts[0].id, "container0"); err != nil {
		return err
	}
	if err := y.open(gate); err != nil {
		return err
	}
	for _, c := range cohorts {
		if _, err := y.finished(c.id); err != nil {
			return err
		}
	}
	return nil
}

// outage stops Temporal for a while, and waits until all tasks run again. Those that survive it have not noticed, and the others have
// been ended.
func (y *Cluster) outage(length time.Duration, cohorts []*cohort) error {
	began := time.Now()
	if err := y.freeze(serverName); err != nil {
		return err
	}
	if err := y.pause(y.aged(length)); err != nil {
		return err
	}
	if err := y.thaw(serverName); err != nil {
		return err
	}
	for _, c := range cohorts {
		err := y.eventually("the tasks of age "+c.age+" run", func() (bool, error) { return y.areRunning(c.id, c.tasks) })
		if err != nil {
			return err
		}
		if length <= c.survives {
			err = y.untouched(c.id, c.tasks)
		} else {
			err = y.ended(c.id, c.tasks, began)
		}
		if err != nil {
			return fmt.Errorf("tasks of age %s: %w", c.age, err)
		}
	}
	return nil
}

// areRunning reports whether the newest execution of each task is running.
func (y *Cluster) areRunning(id string, tasks []string) (bool, error) {
	for _, task := range tasks {
		executions, err := y.executions(id, task)
		if err != nil || len(executions) == 0 {
			return false, err
		}
		last := executions[len(executions)-1]
		if !last.term.IsZero() || time.Since(last.lastSign) > time.Second {
			return false, nil // it has been ended, and has not started again
		}
	}
	return true, nil
}

// ended checks that each task has been started again since a time.
func (y *Cluster) ended(id string, tasks []string, since time.Time) error {
	var errs []error
	for _, task := range tasks {
		executions, err := y.executions(id, task)
		if err != nil {
			return err
		}
		if !executions[len(executions)-1].start.After(since) {
			errs = append(errs, fmt.Errorf("task %s has noticed nothing: %+v", task, executions))
		}
	}
	return errors.Join(errs...)
}

// leaveForGood stops the worker of a container whose lease has grown to 10 min. The container continues as long, and then starts on
// the other node.
func (y *Cluster) leaveForGood(id, task string) error {
	executions, err := y.executions(id, task)
	if err != nil {
		return err
	}
	node := executions[len(executions)-1].node
	other := map[string]string{"a": "b", "b": "a"}[node]
	stopped := time.Now()
	y.struck(node)
	if err := y.process(node).Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := y.pause(y.aged(10 * time.Minute)); err != nil {
		return err
	}
	if err := y.awaitStarted(id, []string{task}, other, 1); err != nil {
		return err
	}
	if executions, err = y.executions(id, task); err != nil {
		return err
	}
	kept, next := executions[len(executions)-2], executions[len(executions)-1]
	y.report("a container without its worker was ended after %.1f s, and started elsewhere after %.1f s", kept.lastSign.Sub(stopped).Seconds(), next.start.Sub(stopped).Seconds())
	if kept.lastSign.Sub(stopped) < y.aged(5*time.Minute) {
		return fmt.Errorf("the container of task %s has ended with its worker: %+v", task, executions)
	}
	return nil
}

// submitGrowing starts a run with a heartbeat time-out that grows up to longest.
func (y *Cluster) submitGrowing(d definition, heartbeat, longest time.Duration) (string, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	runs := switchyardv1connect.NewRunServiceClient(http.DefaultClient, y.gateways[0])
	res, err := runs.SubmitRun(y.ctx, connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Document{Document: string(text)}, Options: &v1.RunOptions{HeartbeatTimeout: durationpb.New(heartbeat), MaxLease: durationpb.New(longest)},
	}))
	if err != nil {
		return "", fmt.Errorf("submit %s: %w", d.Name, err)
	}
	return res.Msg.GetId(), nil
}
