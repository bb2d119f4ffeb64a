package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"switchyard/dev/scriptedmodel"
	"switchyard/workers"
)

const (
	// manyAgents is the number of concurrent agents.
	manyAgents = 200
	// manyTurns is the number of turns of each agent.
	manyTurns = 5
	// slowReply is the provider's response time for a turn.
	slowReply = 2 * time.Second
)

// benchAgentTasks runs the agent measurements whose name contains a text. The text after a colon selects kinds of
// agents, as in "many:shell".
func benchAgentTasks(ctx context.Context, rounds int, only string) error {
	only, kind, _ := strings.Cut(only, ":")
	if strings.Contains("turns", only) {
		if err := benchTurns(ctx, rounds, kind); err != nil {
			return fmt.Errorf("turns of an agent: %w", err)
		}
		fmt.Println()
	}
	if strings.Contains("many", only) {
		if err := benchManyAgents(ctx, rounds, kind); err != nil {
			return fmt.Errorf("many agents: %w", err)
		}
	}
	return nil
}

// benchManyAgents measures many concurrent agents on one worker. The provider is in this process. Agents mostly wait,
// so they reserve no cores.
func benchManyAgents(ctx context.Context, rounds int, only string) error {
	binary, dir, err := buildBinary(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%d agents at once, each %d turns of a provider that takes %s a turn: at least %s.\n\n", manyAgents, manyTurns, slowReply, manyTurns*slowReply)
	fmt.Println("| each turn makes | took | of the minimum | CPU of the worker | of server and gateway | of the provider | memory an agent | of the worker, idle and at most | connections | replies paid twice |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, kind := range agentKinds() {
		if !strings.Contains(kind.name, only) {
			continue
		}
		for range rounds {
			if err := measureManyAgents(ctx, binary, dir, kind); err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
		}
	}
	return nil
}

// measureManyAgents prints one row. It starts separate processes, so that the memory is that of its own agents.
func measureManyAgents(ctx context.Context, binary, dir string, kind agentKind) error {
	state, err := os.MkdirTemp(dir, "agents-")
	if err != nil {
		return err
	}
	dev, err := startProcess(ctx, "Gateway", os.Environ(), binary, "dev", "--nodes", "0", "--port", "0", "--gateway-port", "0", "--ui-port", "0",
		"--store", filepath.Join(state, "store"))
	if err != nil {
		return err
	}
	defer dev.stop()
	env := append(os.Environ(), "TEMPORAL_ADDRESS="+dev.said["Temporal"], "SWITCHYARD_GATEWAY="+dev.said["Gateway"])
	worker, err := startProcess(ctx, "Node", env, binary, "worker", "--name", "agents", "--max-parallel", fmt.Sprint(manyAgents), "--metrics-address", "none")
	if err != nil {
		return err
	}
	defer worker.stop()
	conn, err := workers.Dial(ctx, workers.DialOptions{Address: dev.said["Temporal"], Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := startProvider(agentScript(manyTurns, kind.call, scriptedmodel.Pace{Delay: slowReply}))
	if err != nil {
		return err
	}
	defer p.stop()
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	idle, err := worker.memory()
	if err != nil {
		return err
	}
	peak := worker.watchMemory()
	before := usageOf(dev, worker)
	_, took, err := (&cluster{conn: conn}).run(ctx, kind.definition(p.url, manyTurns, manyAgents))
	used := usageOf(dev, worker).less(before)
	most := peak()
	if err != nil {
		return err
	}
	again := p.model.Delivered() - manyAgents*manyTurns
	if again < 0 {
		return fmt.Errorf("the agents took %d turns less than they have", -again)
	}
	fmt.Printf("| %s | %.1f s | %.2f | %s | %s | %s | %.2f MiB | %d and %d MiB | %d | %d |\n", kind.name, took.Seconds(), took.Seconds()/(manyTurns*slowReply).Seconds(),
		inTenths(used.worker), inTenths(used.dev), inTenths(used.own), float64(most-idle)/manyAgents, idle, most, p.conns.Load(), again)
	return nil
}

// watchMemory starts to sample the memory of the process. It returns a function that returns the peak since then, in
// MiB.
func (p *process) watchMemory() func() int {
	stop, most := make(chan struct{}), make(chan int)
	go func() {
		peak := 0
		for {
			if now, err := p.memory(); err == nil { // no error while the process runs
				peak = max(peak, now)
			}
			select {
			case <-stop:
				most <- peak
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() int {
		close(stop)
		return <-most
	}
}

// usage holds processor times.
type usage struct{ dev, worker, own time.Duration }

func (u usage) less(o usage) usage { return usage{u.dev - o.dev, u.worker - o.worker, u.own - o.own} }

// usageOf returns the processor time so far of two processes and of this one. It is 0 for a process that has ended.
func usageOf(dev, worker *process) (u usage) {
	u.dev, _ = dev.cpu()
	u.worker, _ = worker.cpu()
	u.own = ownUsage()
	return u
}

// ownUsage returns the processor time of this process so far.
func ownUsage() time.Duration {
	var self syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self) // cannot fail
	return time.Duration(self.Utime.Nano() + self.Stime.Nano())
}

func inTenths(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
