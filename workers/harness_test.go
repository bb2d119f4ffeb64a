package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/store"
	"switchyard/dev/temporaltest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
	"switchyard/workflows/definition"
)

// cluster is a Temporal server with a control worker and a store.
type cluster struct {
	dir     string
	server  *temporaltest.Server
	conn    *Connection
	store   *store.Store
	config  ControlConfig
	control *Control
	logger  *slog.Logger
	stops   sync.Once
	sets    atomic.Int32
}

func startCluster(dir string, cfg ControlConfig) (_ *cluster, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	y := &cluster{dir: dir, logger: slog.New(slog.DiscardHandler)}
	defer func() {
		if err != nil {
			err = errors.Join(err, y.stop())
		}
	}()
	if y.server, err = temporaltest.Start(temporaltest.Options{}); err != nil {
		return nil, err
	}
	if y.conn, err = Dial(ctx, DialOptions{Address: y.server.Address(), Identity: "test", Logger: y.logger}); err != nil {
		return nil, err
	}
	if y.store, err = store.Open(ctx, filepath.Join(dir, "store")); err != nil {
		return nil, err
	}
	cfg.Client, cfg.Store, cfg.Logger = y.conn, y.store, y.logger
	y.config = cfg
	y.control, err = StartControl(ctx, cfg)
	return y, err
}

func (y *cluster) stop() (err error) {
	y.stops.Do(func() {
		if y.control != nil {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			err = y.replayAll(ctx)
			y.control.Stop()
		}
		if y.conn != nil {
			y.conn.Close()
		}
		if y.store != nil {
			err = errors.Join(err, y.store.Close())
		}
		if y.server != nil {
			err = errors.Join(err, y.server.Stop())
		}
	})
	return err
}

// workerSet holds the nodes of one test. Their label keeps the tasks of other tests away.
type workerSet struct {
	*cluster
	t       *testing.T
	label   string
	fake    *fake.Executor
	machine *node.Machine
}

// script maps the tasks of a test to their steps. Any other task succeeds at once.
type script map[string][]fake.Step

func (y *cluster) workers(t *testing.T, s script) *workerSet {
	return &workerSet{
		// Node names are short; the number distinguishes long test names.
		cluster: y, t: t, label: node.Name(fmt.Sprintf("%d-%s", y.sets.Add(1), t.Name())),
		fake:    fake.New("shell", s),
		machine: node.NewMachine(node.Size{Cores: 1000, MemoryMB: 1 << 20}),
	}
}

// name returns the name of a node of this test.
func (c *workerSet) name(short string) string { return node.Name(short + "-" + c.label) }

// start starts a node that runs the script. The node stops with the test.
func (c *workerSet) start(short string, change ...func(*NodeConfig)) *Node {
	c.t.Helper()
	cfg := c.config(short)
	for _, f := range change {
		f(&cfg)
	}
	c.control.ExpectNodes(cfg.Name)
	n, err := StartNode(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(n.Stop)
	return n
}

// config returns the configuration of a node that runs the script.
func (c *workerSet) config(short string) NodeConfig {
	return NodeConfig{
		Client: c.conn, Store: c.store, Logger: c.logger,
		Name: c.name(short), Labels: []string{c.label}, MaxParallel: 50,
		Machine: c.machine, Executors: []executor.Executor{c.fake}, ScratchDir: c.t.TempDir(),
	}
}

// input parses a definition and pins its tasks to the nodes of this test.
func (c *workerSet) input(document string) *v1.RunInput {
	c.t.Helper()
	def, err := definition.Parse("test.yaml", []byte(document))
	if err != nil {
		c.t.Fatal(err)
	}
	return c.inputOf(def)
}

func (c *workerSet) inputOf(def *v1.Definition) *v1.RunInput {
	c.t.Helper()
	refs, err := definition.References(def)
	if err != nil {
		c.t.Fatal(err)
	}
	def = proto.CloneOf(def)
	for _, task := range def.GetTasks() {
		if task.Constraints == nil {
			task.Constraints = &v1.Constraints{}
		}
		task.Constraints.NodeLabels = append(task.Constraints.NodeLabels, c.label)
		// All nodes share this machine, whose few cores do not belong to this test alone.
		if task.Resources == nil {
			task.Resources = &v1.Resources{Cores: new(float64)}
		}
	}
	return &v1.RunInput{
		Definition: def, References: refs,
		// On a busy machine a node may exceed the usual pickup time-out, and a re-placed task would get another claim.
		Options: &v1.RunOptions{PickupTimeout: durationpb.New(limit)},
	}
}

// running waits until an attempt of the task runs.
func (c *workerSet) running(task string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	if err := c.fake.AwaitRunning(ctx, task); err != nil {
		c.t.Fatalf("task %s did not start: %v", task, err)
	}
}

// calls counts the attempts that ran, by task.
func (c *workerSet) calls() map[string]int {
	n := map[string]int{}
	for _, call := range c.fake.Calls() {
		n[call.Task]++
	}
	return n
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	pause := time.Millisecond
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		// Polling all the time would slow the condition down.
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}
