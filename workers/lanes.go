package workers

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"switchyard/activities/capture"
	"switchyard/activities/environments"
	"switchyard/activities/executor"
	"switchyard/activities/taskrunner"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// serve starts a worker for each lane of the node.
func (n *Node) serve() error {
	service := &taskrunner.Service{Client: n.cfg.Client, Node: n.attempts, SetTerms: n.setTerms}
	return errors.Join(
		n.serveLane(names.ControlLane, worker.Options{
			MaxConcurrentActivityExecutionSize: 8,
			MaxConcurrentActivityTaskPollers:   1,
			WorkerStopTimeout:                  time.Second,
		}, map[string]any{
			names.HeartbeatActivity: n.presence.Heartbeat,
			names.DrainActivity:     service.Drain,
			names.UndrainActivity:   service.Undrain,
			names.TermsActivity:     service.Terms,
			names.DetachActivity:    n.attempts.Detach,
			names.SteerActivity:     n.attempts.Steer,
			names.ReserveActivity:   n.attempts.Reserve,
		}),
		n.serveAttempts(names.CPULane),
		n.serveGPUs(),
		n.serveRemote(),
		n.serveEnvironments(),
	)
}

// serveGPUs starts the GPU lane once the node has GPUs; a driver may load late.
func (n *Node) serveGPUs() error {
	if n.gpuLane || len(n.gpuNames()) == 0 {
		return nil
	}
	n.gpuLane = true
	return n.serveAttempts(names.GPULane)
}

// gpuNames returns the names by which programs address the GPUs of the machine, by index.
func (n *Node) gpuNames() map[int32]string {
	named := map[int32]string{}
	for _, g := range n.cfg.Machine.Total().GPUs {
		named[g.Index] = cmp.Or(g.MIGUUID, strconv.Itoa(int(g.Index)))
	}
	return named
}

func (n *Node) hasNUMA() bool { return len(n.cfg.Machine.Total().NUMA) > 0 }

// serveRemote starts the lane for remote attempts if an executor runs any.
func (n *Node) serveRemote() error {
	if !slices.ContainsFunc(n.cfg.Executors, func(e executor.Executor) bool { return v1.IsRemote(e.Type()) }) {
		return nil
	}
	return n.serveAttempts(names.RemoteLane)
}

// capturesAtOnce is the number of concurrent captures of environments. Each takes as much disk as a container has
// files.
const capturesAtOnce = 2

// serveEnvironments starts the lane for captures of environments if an executor supports them.
func (n *Node) serveEnvironments() error {
	if !slices.ContainsFunc(n.cfg.Executors, func(e executor.Executor) bool { return e.Capabilities().Capture != nil }) {
		return nil
	}
	captures := &capture.Node{
		Client: n.cfg.Client, Name: n.cfg.Name, Library: environments.New(n.cfg.Store), Attempts: n.attempts, Executors: n.attempts.Executors, Logger: n.cfg.Logger,
	}
	return n.serveLane(names.EnvironmentLane, worker.Options{
		MaxConcurrentActivityExecutionSize: capturesAtOnce,
		MaxConcurrentActivityTaskPollers:   1,
		WorkerStopTimeout:                  captureStopTimeout,
	}, map[string]any{names.CaptureActivity: captures.Capture})
}

// captureStopTimeout is how long a stopping node waits for the captures that it cancels.
const captureStopTimeout = 5 * time.Second

func (n *Node) serveAttempts(lane names.Lane) error {
	most := 2 * n.cfg.MaxParallel // twice the slots, because the queue is filled ahead; the ledger limits the running attempts
	if lane == names.RemoteLane {
		most = names.MaxRemoteAttempts
	}
	return n.serveLane(lane, worker.Options{
		MaxConcurrentActivityExecutionSize: most,
		MaxConcurrentActivityTaskPollers:   4,
		WorkerStopTimeout:                  nodeStopTimeout + definition.MaxStopGrace, // Stop itself waits only as long as an attempt may take
	}, map[string]any{names.ExecuteActivity: n.attempts.Execute})
}

// StopLastLane stops serving the lane that the node has begun to serve last. The node stays in the fleet, and in tests
// another worker takes the tasks of the lane.
func (n *Node) StopLastLane() {
	last := len(n.workers) - 1
	n.workers[last].Stop()
	n.workers = n.workers[:last]
}

// stopWorkers stops the workers of all lanes, the newest first, and closes the channel once they have stopped. A worker waits for its
// attempts, and for up to 10 s for the server.
func (n *Node) stopWorkers() <-chan struct{} {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for _, w := range slices.Backward(n.workers) {
			w.Stop()
		}
	}()
	return stopped
}

// serveLane starts a worker for a queue of the node.
func (n *Node) serveLane(lane names.Lane, opts worker.Options, types map[string]any) error {
	opts.DisableWorkflowWorker = true
	w := worker.New(n.cfg.Client.Client, names.NodeQueue(n.cfg.Name, lane), opts)
	for name, f := range types {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	if err := w.Start(); err != nil {
		return err
	}
	n.workers = append(n.workers, w)
	return nil
}
