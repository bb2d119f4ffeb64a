package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/worker"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell"
	"switchyard/activities/executor/subagent"
	"switchyard/activities/executor/subagent/model"
	"switchyard/activities/hostlist"
	"switchyard/activities/notifications"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/embedded"
	"switchyard/workflows/visibility"
)

// window is the number of concurrent tasks on either side.
const window = 100

// benchNode is the name of the only node.
const benchNode = "bench"

// cluster is one embedded server that runs Switchyard and the hand-written workflows.
type cluster struct {
	conn    *workers.Connection
	targets *notifications.Targets // of notifications, which may go to the loopback interface
	closers []func() error
}

// openCluster starts a server with a control worker and a node; changes adjust the configuration of the node.
func openCluster(ctx context.Context, changes ...func(*workers.NodeConfig)) (_ *cluster, err error) {
	y := &cluster{}
	defer func() {
		if err != nil {
			y.close()
		}
	}()
	logger := slog.New(slog.DiscardHandler)
	dir, err := os.MkdirTemp("", "switchyard-bench-")
	if err != nil {
		return nil, err
	}
	y.onClose(func() error { return os.RemoveAll(dir) })
	opts := embedded.Options{Logger: logger, SearchAttributes: visibility.Types()}
	if durable {
		opts.DBFile = filepath.Join(dir, "temporal.db")
	}
	server, err := embedded.Start(ctx, opts)
	if err != nil {
		return nil, err
	}
	y.onClose(server.Stop)
	if y.conn, err = workers.Dial(ctx, workers.DialOptions{Address: server.Address(), Logger: logger}); err != nil {
		return nil, err
	}
	y.onClose(func() error { y.conn.Close(); return nil })
	st, err := store.Open(ctx, filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	y.onClose(st.Close)
	y.targets = notifications.NewTargets(st, time.Now)
	sender := notifications.NewSender(y.targets, nil, hostlist.List{"127.0.0.1"}, time.Now)
	y.onClose(func() error { sender.Close(); return nil })
	control, err := workers.StartControl(ctx, workers.ControlConfig{Client: y.conn, Store: st, Sender: sender, Logger: logger})
	if err != nil {
		return nil, err
	}
	y.onClose(func() error { control.Stop(); return nil })
	sh, err := shell.New(shell.Options{Watchdog: true, Logger: logger})
	if err != nil {
		return nil, err
	}
	y.onClose(sh.Close)
	prices, err := model.LoadPrices("")
	if err != nil {
		return nil, err
	}
	agents := subagent.New(subagent.Options{Shell: sh, Tools: v1.AgentTools(), Prices: prices, Logger: logger})
	control.ExpectNodes(benchNode)
	config := workers.NodeConfig{
		Client: y.conn, Store: st, Logger: logger, Name: benchNode, MaxParallel: window,
		Machine: workers.ThisMachine(ctx), Executors: []executor.Executor{sh, agents}, ScratchDir: filepath.Join(dir, "scratch"),
	}
	for _, change := range changes {
		change(&config)
	}
	n, err := workers.StartNode(ctx, config)
	if err != nil {
		return nil, err
	}
	y.onClose(func() error { n.Stop(); return nil })
	return y, y.startByHand()
}

// startByHand starts the workers of the hand-written workflows. Activities have a queue of their own, as they would in
// a fleet of different machines.
func (y *cluster) startByHand() error {
	control := worker.New(y.conn.Client, workflowQueue, worker.Options{})
	control.RegisterWorkflow(chainByHand)
	control.RegisterWorkflow(fanOutByHand)
	machine := worker.New(y.conn.Client, activityQueue, worker.Options{
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityExecutionSize: window,
		MaxConcurrentActivityTaskPollers:   4,
	})
	machine.RegisterActivity(shellByHand)
	for _, w := range []worker.Worker{control, machine} {
		if err := w.Start(); err != nil {
			return err
		}
		y.onClose(func() error { w.Stop(); return nil })
	}
	return nil
}

func (y *cluster) onClose(f func() error) { y.closers = append(y.closers, f) }

func (y *cluster) close() error {
	var errs []error
	for i := len(y.closers) - 1; i >= 0; i-- {
		errs = append(errs, y.closers[i]())
	}
	return errors.Join(errs...)
}
