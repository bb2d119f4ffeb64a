package drill

import (
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// terminateRun terminates the workflow of a run with a large fan-out and a child run in progress, and retries the run
// at once.
func terminateRun(y *Cluster) error {
	workers := []string{"a", "b"}
	if err := y.start(workers...); err != nil {
		return err
	}
	n := y.Scale.Instances
	d := y.parent("ended", job{ticks: 20})
	d.Tasks["each"] = y.task(job{instances: n, ticks: 2})
	d.Tasks["long"] = y.task(job{ticks: 50})
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	if err := y.awaitBegun(id, "each", n/6); err != nil {
		return err
	}
	// The run does not know of work that ended just before, and repeats it.
	for _, w := range workers {
		y.struck(w)
	}
	if err := y.terminate(id); err != nil {
		return err
	}
	if _, err := y.must("runs", "retry", id); err != nil {
		return err
	}
	r, err := y.finished(id)
	if err != nil {
		return err
	}
	if r.Generation != 1 {
		return fmt.Errorf("run %s is in generation %d", id, r.Generation)
	}
	return nil
}

// terminate ends a workflow as `temporal workflow terminate` does.
func (y *Cluster) terminate(id string) error {
	c, err := y.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.TerminateWorkflow(y.ctx, id, "", "a drill")
}

// dial returns a Temporal client of the cluster's server.
func (y *Cluster) dial() (client.Client, error) {
	return client.DialContext(y.ctx, client.Options{HostPort: y.temporal, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
}
