package drill

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// faults breaks random members of a cluster, one at a time, and mends them.
type faults struct {
	cluster *Cluster
	workers []string
	dice    *rand.Rand
	counts  map[string]int
}

func (f *faults) run(length time.Duration) error {
	kinds := []struct {
		name  string
		fault func() error
	}{
		{"worker killed", f.killWorker},
		{"worker restarted", f.restartWorker},
		{"worker stopped", f.stopWorker},
		{"worker cut off", f.cutWorker},
		{"worker without store", f.cutStore},
		{"worker drained", f.drainWorker},
		{"gateway killed", f.killGateway},
		{"gateway stopped", f.stopGateway},
		{"store away", f.takeStoreAway},
		{"server killed", f.killServer},
	}
	// Together with the marks and the logs, this file shows the cause of a finding of the soak.
	log, err := os.Create(filepath.Join(f.cluster.Dir, "faults"))
	if err != nil {
		return err
	}
	defer log.Close()
	for end := time.Now().Add(length); time.Now().Before(end); {
		kind, began := kinds[f.dice.IntN(len(kinds))], time.Now()
		if err := kind.fault(); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		if _, err := fmt.Fprintf(log, "%s to %s %s\n", began.UTC().Format(time.RFC3339Nano), time.Now().UTC().Format(time.RFC3339Nano), kind.name); err != nil {
			return err
		}
		f.counts[kind.name]++
		if err := f.cluster.pause(f.between(0, 2*time.Second)); err != nil {
			return err
		}
	}
	return nil
}

func (f *faults) worker() string { return f.workers[f.dice.IntN(len(f.workers))] }

// between returns a random duration.
func (f *faults) between(least, most time.Duration) time.Duration {
	return least + time.Duration(f.dice.Int64N(int64(most-least)))
}

// outage returns how long a fault lasts: sometimes less than a time-out, sometimes more.
func (f *faults) outage() time.Duration {
	return f.between(100*time.Millisecond, 3*f.cluster.Scale.Heartbeat)
}

func (f *faults) killWorker() error {
	w := f.worker()
	if err := f.cluster.kill(w); err != nil {
		return err
	}
	return f.startAgain(w)
}

// restartWorker stops a worker as systemd would. The worker leaves what can run on to the next one.
func (f *faults) restartWorker() error {
	w := f.worker()
	if err := f.cluster.terminate(w); err != nil {
		return err
	}
	return f.startAgain(w)
}

// startAgain starts a worker that has ended, in time for the leases of what it has left or too late.
func (f *faults) startAgain(w string) error {
	if err := f.cluster.pause(f.between(0, f.cluster.Scale.Heartbeat)); err != nil {
		return err
	}
	if err := f.cluster.startWorker(w); err != nil {
		return err
	}
	// A worker that finds no server when it starts exits.
	_, err := f.cluster.process(w).Field(f.cluster.ctx, "Node")
	return err
}

func (f *faults) stopWorker() error {
	w := f.worker()
	if err := f.cluster.freeze(w); err != nil {
		return err
	}
	if err := f.cluster.pause(f.outage()); err != nil {
		return err
	}
	return f.cluster.thaw(w)
}

func (f *faults) cutWorker() error { return f.cut(f.worker(), "temporal") }

// cutStore cuts a worker off from the gateway that stores its results.
func (f *faults) cutStore() error { return f.cut(f.worker(), "gateway") }

func (f *faults) cut(worker, from string) error {
	f.cluster.link(worker, from).Cut()
	defer f.cluster.link(worker, from).Restore()
	return f.cluster.pause(f.outage())
}

func (f *faults) drainWorker() error {
	w := f.worker()
	if err := f.cluster.awaitNodes(w); err != nil {
		return err
	}
	deadline := f.between(0, 3*time.Second).Round(time.Millisecond)
	// A task that ends by itself after it was asked to end counts as drained.
	f.cluster.struckAt(w, time.Now().Add(deadline))
	if _, err := f.cluster.must("nodes", "drain", w, "--deadline", deadline.String(), "--wait"); err != nil {
		return err
	}
	_, err := f.cluster.must("nodes", "undrain", w)
	return err
}

func (f *faults) killGateway() error {
	i := f.dice.IntN(len(f.cluster.gateways))
	if err := f.cluster.kill(gatewayName(i)); err != nil {
		return err
	}
	if err := f.cluster.pause(f.between(0, 5*time.Second)); err != nil {
		return err
	}
	return f.cluster.restartGateway(i)
}

// stopGateway suspends a gateway while it serves, dispatches tasks and carries workflows.
func (f *faults) stopGateway() error {
	name := gatewayName(f.dice.IntN(len(f.cluster.gateways)))
	if err := f.cluster.freeze(name); err != nil {
		return err
	}
	if err := f.cluster.pause(f.outage()); err != nil {
		return err
	}
	return f.cluster.thaw(name)
}

// takeStoreAway makes the store unavailable to all gateways. It then gives workers time to record what ended during the
// outage: a worker that is killed before that loses these results, and its tasks run again.
func (f *faults) takeStoreAway() error {
	if err := f.cluster.hideStore(); err != nil {
		return err
	}
	return errors.Join(f.cluster.pause(f.outage()), f.cluster.showStore(), f.cluster.pause(f.cluster.Scale.Heartbeat))
}

func (f *faults) killServer() error {
	if err := f.cluster.kill(serverName); err != nil {
		return err
	}
	if err := f.cluster.pause(f.between(0, time.Second)); err != nil {
		return err
	}
	return f.cluster.restartServer()
}
