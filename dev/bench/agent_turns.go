package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/tool"
	"switchyard/dev/scriptedmodel"
	v1 "switchyard/proto/switchyard/v1"
)

// agentShape is the -shape that measures agents. A part of a name after a colon, as in "agents:turn", selects the
// matching measurements.
const agentShape = "agents"

// agentTurns is the number of turns of an agent whose own cost is measured.
const agentTurns = 50

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
		"prompt": "Look at all files, one after the other, and say whether they are fine.", "baseUrl": url, "model": agentModel,
		"tools": tools, "maxTurns": turns + 1,
	})
	task := &v1.TaskDefinition{Type: v1.TypeSubagent, Spec: spec, Resources: &v1.Resources{Cores: proto.Float64(0)}}
	if agents > 1 {
		task.Parallel = structpb.NewNumberValue(float64(agents))
	}
	return &v1.Definition{Name: "agents", Tasks: map[string]*v1.TaskDefinition{"t": task}}
}

// benchTurns measures what an agent's turn costs besides the provider's time, and what the official client costs in the
// same conversation, with the same provider and tool calls.
func benchTurns(ctx context.Context, rounds int, only string) (err error) {
	y, err := openCluster(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.close()) }()
	fmt.Printf("| each of %d turns makes | a turn of an agent, less the provider | of the official client and the tool by themselves | difference | connections |\n|---|--:|--:|--:|--:|\n", agentTurns)
	for _, kind := range agentKinds() {
		if !strings.Contains(kind.name, only) {
			continue
		}
		var ours, theirs []time.Duration
		var connections int64
		for round := range rounds + 1 {
			a, n, err := ownCost(kind, func(p *provider) (time.Duration, error) { return leadAgent(ctx, y, kind, p) })
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			b, _, err := ownCost(kind, func(p *provider) (time.Duration, error) { return leadByHand(ctx, y, kind, p) })
			if err != nil {
				return fmt.Errorf("%s, by hand: %w", kind.name, err)
			}
			if round > 0 { // the first round warms the caches
				ours, theirs, connections = append(ours, a), append(theirs, b), max(connections, n)
			}
		}
		a, b := median(ours), median(theirs)
		fmt.Printf("| %s | %s (%s to %s) | %s | %s | %d |\n", kind.name, rounded(a), rounded(slices.Min(ours)), rounded(slices.Max(ours)), rounded(b), rounded(a-b), connections)
	}
	return nil
}

// ownCost returns the cost of a turn beyond that of the provider, and the number of connections to the provider.
func ownCost(kind agentKind, lead func(*provider) (time.Duration, error)) (turn time.Duration, connections int64, err error) {
	p, err := startProvider(agentScript(agentTurns, kind.call, scriptedmodel.Pace{}))
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	took, err := lead(p)
	if err != nil {
		return 0, 0, err
	}
	if n := p.model.Delivered(); n != agentTurns {
		return 0, 0, fmt.Errorf("the agent took %d turns instead of %d", n, agentTurns)
	}
	return (took - p.took()) / agentTurns, p.conns.Load(), nil
}

// leadAgent returns how long a task takes from its start to its end.
func leadAgent(ctx context.Context, y *cluster, kind agentKind, p *provider) (time.Duration, error) {
	status, _, err := y.run(ctx, kind.definition(p.url, agentTurns, 1))
	if err != nil {
		return 0, err
	}
	task := status.GetRun().GetTasks()["t"]
	if task.GetState() != v1.TaskCompleted {
		return 0, fmt.Errorf("the task is %s: %s", task.GetState(), task.GetError())
	}
	return task.GetCompletedAt().AsTime().Sub(task.GetStartedAt().AsTime()), nil
}

// leadByHand runs the conversation of an agent with only the official client and the tools. It records nothing.
func leadByHand(ctx context.Context, y *cluster, kind agentKind, p *provider) (_ time.Duration, err error) {
	workspace, err := os.MkdirTemp("", "switchyard-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(workspace)
	tree, err := tool.NewTree(workspace)
	if err != nil {
		return 0, err
	}
	sh := tool.NewShell(tree, tool.ShellOptions{Sandbox: y.shell, Attempt: executor.Attempt{
		ID: fmt.Sprintf("bench-%d", time.Now().UnixNano()), Identity: executor.Identity{Run: "bench", Task: "t", Node: benchNode, Index: -1, Claim: 1},
		WorkspaceDir: workspace, BaseDir: workspace,
	}})
	defer func() { err = errors.Join(err, sh.Close()) }()
	began := time.Now()
	client := anthropic.NewClient(option.WithoutEnvironmentDefaults(), option.WithBaseURL(p.url), option.WithMaxRetries(0))
	conversation := []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Look at all files, one after the other, and say whether they are fine."))}
	byName := map[string]tool.Tool{}
	var tools []anthropic.ToolUnionParam
	if kind.call != nil {
		for _, one := range append(tool.Files(tree), tool.Tool(sh)) {
			byName[one.Definition().Name] = one
		}
		tools = append(tools, anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{}, kind.call.Name))
	}
	for {
		stream := client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{Model: agentModel, MaxTokens: 8192, Messages: conversation, Tools: tools})
		var reply anthropic.Message
		for stream.Next() {
			if err := reply.Accumulate(stream.Current()); err != nil {
				return 0, err
			}
		}
		if err := errors.Join(stream.Err(), stream.Close()); err != nil {
			return 0, err
		}
		if reply.StopReason == anthropic.StopReasonEndTurn {
			return time.Since(began), nil
		}
		next := []anthropic.ContentBlockParamUnion{}
		for _, block := range reply.Content {
			if block.Type != "tool_use" {
				continue
			}
			outcome, err := byName[block.Name].Call(ctx, tool.Call{ID: block.ID, Arguments: block.Input})
			if err != nil {
				return 0, err
			}
			next = append(next, anthropic.NewToolResultBlock(block.ID, outcome.Text, outcome.IsError))
		}
		if len(next) == 0 {
			next = append(next, anthropic.NewTextBlock("Your reply was cut off. Continue exactly where it ends."))
		}
		conversation = append(conversation, reply.ToParam(), anthropic.NewUserMessage(next...))
	}
}
