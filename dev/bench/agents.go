package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/dev/processes"
	"switchyard/dev/scriptedmodel"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
)

const (
	// agentTurns is the number of turns of an agent whose own cost is measured.
	agentTurns = 50
	// manyAgents is the number of concurrent agents, each of which takes manyTurns.
	manyAgents, manyTurns = 200, 5
	// slowReply is the response time of the provider of concurrent agents.
	slowReply = 2 * time.Second
	// settle is how long a process may settle before its memory is measured.
	settle = 10 * time.Second
)

// agentKind is a kind of agent, defined by its action in each turn.
type agentKind struct {
	name  string
	tools []string
	call  *scriptedmodel.ToolCall // nil for no action
}

func agentKinds() []agentKind {
	return []agentKind{
		{"no call", nil, nil},
		{"`list_files`", []string{v1.AgentToolFiles}, &scriptedmodel.ToolCall{Name: "list_files"}},
		{"`write_file`", []string{v1.AgentToolFiles}, &scriptedmodel.ToolCall{Name: "write_file", Arguments: `{"path":"notes.txt","content":"one more"}`}},
		{"`shell`: `true`", []string{v1.AgentToolShell}, &scriptedmodel.ToolCall{Name: "shell", Arguments: `{"command":"true"}`}},
	}
}

// definition returns a definition of concurrent agents of one kind.
func (k agentKind) definition(url string, turns, agents int) *v1.Definition {
	tools := make([]any, len(k.tools))
	for i, name := range k.tools {
		tools[i] = name
	}
	spec, _ := structpb.NewStruct(map[string]any{ // contains only valid values
		"prompt": "Look at all files, one after the other, and say whether they are fine.", "baseUrl": url, "model": v1.DefaultAgentModel,
		"tools": tools, "maxTurns": turns + 1,
	})
	task := &v1.TaskDefinition{Type: v1.TypeSubagent, Spec: spec, Resources: &v1.Resources{Cores: proto.Float64(0)}}
	if agents > 1 {
		task.Parallel = structpb.NewNumberValue(float64(agents))
	}
	return oneTask("agents", task)
}

// benchAgents runs the agent measurements whose name contains a text.
func benchAgents(ctx context.Context, rounds int, part string) error {
	if strings.Contains("turns", part) {
		if err := benchTurns(ctx, rounds); err != nil {
			return fmt.Errorf("turns of an agent: %w", err)
		}
		fmt.Println()
	}
	if strings.Contains("many", part) {
		if err := benchManyAgents(ctx); err != nil {
			return fmt.Errorf("many agents: %w", err)
		}
	}
	return nil
}

// benchTurns measures what an agent's turn costs besides the provider's time.
func benchTurns(ctx context.Context, rounds int) (err error) {
	y, err := openCluster(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.close()) }()
	fmt.Printf("| each of %d turns makes | a turn, less the provider |\n|---|--:|\n", agentTurns)
	for _, kind := range agentKinds() {
		var took []time.Duration
		for round := range rounds + 1 {
			d, err := ownCost(ctx, y, kind)
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			if round > 0 { // the first round warms the caches
				took = append(took, d)
			}
		}
		fmt.Printf("| %s | %s (%s to %s) |\n", kind.name, inMs(median(took)), inMs(slices.Min(took)), inMs(slices.Max(took)))
	}
	return nil
}

// ownCost returns the cost of a turn beyond that of the provider.
func ownCost(ctx context.Context, y *cluster, kind agentKind) (time.Duration, error) {
	p, err := startProvider(agentScript(agentTurns, kind.call, scriptedmodel.Pace{}))
	if err != nil {
		return 0, err
	}
	defer p.stop()
	status, _, err := y.run(ctx, kind.definition(p.url, agentTurns, 1))
	if err != nil {
		return 0, err
	}
	if n := p.model.Delivered(); n != agentTurns {
		return 0, fmt.Errorf("the agent took %d turns instead of %d", n, agentTurns)
	}
	task := status.GetRun().GetTasks()["t"]
	took := task.GetCompletedAt().AsTime().Sub(task.GetStartedAt().AsTime())
	return (took - time.Duration(p.answered.Load())) / agentTurns, nil
}

// benchManyAgents measures concurrent agents without tools on a worker of their own, so that the memory is theirs. The
// provider is in this process. Agents mostly wait, so they reserve no cores.
func benchManyAgents(ctx context.Context) error {
	binary, dir, err := buildBinary(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dev, err := startProcess(ctx, dir, "Store", nil, binary, "dev", "--nodes", "0", "--port", "0", "--gateway-port", "0", "--ui-port", "0",
		"--store", filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	defer end(dev)
	env := []string{"TEMPORAL_ADDRESS=" + said(dev, "Temporal"), "SWITCHYARD_GATEWAY=" + said(dev, "Gateway")}
	worker, err := startProcess(ctx, dir, "Node", env, binary, "worker", "--name", "agents", "--max-parallel", fmt.Sprint(manyAgents), "--metrics-address", "none")
	if err != nil {
		return err
	}
	defer end(worker)
	conn, err := workers.Dial(ctx, workers.DialOptions{Address: said(dev, "Temporal"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := startProvider(agentScript(manyTurns, nil, scriptedmodel.Pace{Delay: slowReply}))
	if err != nil {
		return err
	}
	defer p.stop()
	if err := processes.Pause(ctx, settle); err != nil {
		return err
	}
	idle, err := memory(worker, "VmRSS")
	if err != nil {
		return err
	}
	_, took, err := (&cluster{conn: conn}).run(ctx, agentKinds()[0].definition(p.url, manyTurns, manyAgents))
	if err != nil {
		return err
	}
	peak, err := memory(worker, "VmHWM")
	if err != nil {
		return err
	}
	if n := p.model.Delivered(); n < manyAgents*manyTurns {
		return fmt.Errorf("the agents took %d turns instead of %d", n, manyAgents*manyTurns)
	}
	fmt.Printf("%d agents at once, each %d turns of a provider that takes %s a turn, at least %s: %.1f s, and %.2f MiB an agent.\n",
		manyAgents, manyTurns, slowReply, manyTurns*slowReply, took.Seconds(), float64(peak-idle)/manyAgents)
	return nil
}
