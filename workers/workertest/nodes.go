package workertest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/registry"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/node"
	"switchyard/workflows/names"
)

// Script maps the tasks of a test to their steps. A task without steps succeeds at once.
type Script map[string][]fake.Step

// Nodes starts the nodes of one test in a cluster, and submits its runs. Their label keeps the tasks of other tests away.
type Nodes struct {
	*Cluster
	T *testing.T
	// Label is a label of each node, and a constraint of each task of an input.
	Label string
	// Fake is the executor of the nodes for the type shell. It follows the script of the test.
	Fake *fake.Executor
	// machine is shared by the nodes, as by the nodes of one process.
	machine *node.Machine
}

// Nodes returns the nodes of a test, which follow a script. The caller starts them.
func (y *Cluster) Nodes(t *testing.T, s Script) *Nodes {
	return &Nodes{
		// Node names are short; the number distinguishes long test names.
		Cluster: y, T: t, Label: node.Name(fmt.Sprintf("%d-%s", y.sets.Add(1), t.Name())),
		Fake:    fake.New("shell", s),
		machine: node.NewMachine(node.Size{Cores: 1000, MemoryMB: 1 << 20}),
	}
}

// Name returns the name of a node from the short one by which the test calls it.
func (c *Nodes) Name(short string) string { return node.Name(short + "-" + c.Label) }

// Start starts a node, whose configuration the test may change. The node stops with the test.
func (c *Nodes) Start(short string, change ...func(*workers.NodeConfig)) *workers.Node {
	c.T.Helper()
	cfg := c.NodeConfig(short)
	for _, f := range change {
		f(&cfg)
	}
	c.Control.ExpectNodes(cfg.Name)
	n, err := workers.StartNode(c.T.Context(), cfg)
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() {
		n.Stop()
		// The fleet reads every node that it knows once a second.
		_ = c.Conn.TerminateWorkflow(context.Background(), names.NodeWorkflowID(cfg.Name), "", "the test is over")
	})
	return n
}

// NodeConfig returns the configuration with which Start starts a node.
func (c *Nodes) NodeConfig(short string) workers.NodeConfig {
	return workers.NodeConfig{
		Client: c.Conn, Store: c.Store, Logger: c.Logger,
		Name: c.Name(short), Labels: []string{c.Label}, MaxParallel: 50,
		Machine: c.machine, Executors: []executor.Executor{c.Fake}, ScratchDir: c.T.TempDir(),
	}
}

// AwaitRunning waits until an attempt of the task runs.
func (c *Nodes) AwaitRunning(task string) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), Limit)
	defer cancel()
	if err := c.Fake.AwaitRunning(ctx, task); err != nil {
		c.T.Fatalf("task %s did not start: %v", task, err)
	}
}

// Calls returns how many attempts have started, by task.
func (c *Nodes) Calls() map[string]int {
	n := map[string]int{}
	for _, call := range c.Fake.Calls() {
		n[call.Task]++
	}
	return n
}

// WithLabels returns a change of [Nodes.Start] that adds labels to the node.
func WithLabels(more ...string) func(*workers.NodeConfig) {
	return func(cfg *workers.NodeConfig) { cfg.Labels = append(cfg.Labels, more...) }
}

// AwaitState waits until a node, by its full name, is in a state according to the registry, and returns it.
func (c *Nodes) AwaitState(node, state string) *v1.Node {
	c.T.Helper()
	var seen *v1.Node
	Eventually(c.T, node+" is "+state, func() bool {
		n, err := registry.New(c.Conn).Get(c.T.Context(), node)
		if err != nil && !errors.Is(err, registry.ErrUnknown) && !IsLate(err) {
			c.T.Fatal(err)
		}
		seen = n
		return n.GetState() == state
	})
	return seen
}

// OutOfMemory returns the result of an attempt that the kernel killed because its memory was exhausted.
func OutOfMemory() executor.Result {
	return executor.Result{ExitCode: 137, Signal: "SIGKILL", OOMKilled: true}
}
