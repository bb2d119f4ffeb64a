package drill

import (
	"errors"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// killRetry retries a failed run and kills the gateway at that moment: first after its reply, then during the request.
func killRetry(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	d := definition{Name: "again", Tasks: map[string]taskSpec{
		"first":  y.task(job{}),
		"fails":  y.task(job{fails: 1, after: []string{"first"}}),
		"beside": y.task(job{ticks: 5, after: []string{"first"}}),
		"last":   y.task(job{after: []string{"fails"}}),
	}}
	for i, ask := range []func(id string) error{y.retryAndKill, y.killAndRetry} {
		once := y.gate(fmt.Sprint("once-", i))
		d.Tasks["fails"] = y.task(job{once: once, after: []string{"first"}})
		d.Tasks["fails"].Retry["maxRetries"] = 0
		id, err := y.submit(d)
		if err != nil {
			return err
		}
		r, err := y.awaitEnd(id)
		if err != nil {
			return err
		}
		if r.State != v1.RunFailed || r.Tasks["last"].State != v1.TaskSkipped {
			return fmt.Errorf("run %s is %s, and its last task %s", id, r.State, r.Tasks["last"].State)
		}
		if err := ask(id); err != nil {
			return err
		}
		if r, err = y.finished(id); err != nil {
			return err
		}
		if r.Generation != 1 {
			return fmt.Errorf("run %s was retried once and is in generation %d", id, r.Generation)
		}
		for task, want := range map[string]int{"first": 1, "beside": 1, "fails": 2, "last": 1} {
			executions, err := y.executions(id, task)
			if err != nil {
				return err
			}
			if len(executions) != want {
				return fmt.Errorf("task %s of %s was executed %d times, not %d", task, id, len(executions), want)
			}
		}
	}
	return nil
}

// retryAndKill kills the gateway after it has replied that the run continues.
func (y *Cluster) retryAndKill(id string) error {
	if _, err := y.must("runs", "retry", id); err != nil {
		return err
	}
	return errors.Join(y.kill(gatewayName(0)), y.restartGateway(0))
}

// killAndRetry kills the gateway during the request. The caller does not learn the result, and checks the run before
// retrying.
func (y *Cluster) killAndRetry(id string) error {
	if err := y.killDuring("runs", "retry", id); err != nil {
		return err
	}
	r, err := y.get(id)
	if err != nil || r.Generation == 1 {
		return err
	}
	_, err = y.must("runs", "retry", id)
	return err
}

// killDuring kills the gateway while it handles a command, which may get no reply, and restarts it.
func (y *Cluster) killDuring(command ...string) error {
	asked := make(chan error, 1)
	go func() {
		_, err := y.command(0, command...)
		asked <- err
	}()
	if err := y.pause(y.Scale.Short / 10); err != nil {
		return err
	}
	return errors.Join(y.kill(gatewayName(0)), <-asked, y.restartGateway(0))
}
