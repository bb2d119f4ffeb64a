package subagent

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/program"
	"switchyard/activities/executor/subagent/session"
	v1 "switchyard/proto/switchyard/v1"
)

// commands are the programs that spec.agent names.
var commands = map[string][]string{v1.AgentClaudeCode: {"claude"}}

// runProgram has a program on the node lead an agent.
func (e *Executor) runProgram(ctx context.Context, a executor.Attempt, spec *v1.SubagentSpec, spawned func()) (executor.Result, error) {
	l := &loop{e: e, a: a, spec: spec, session: session.New(firstMessage(spec))}
	if err := l.start(ctx); err != nil {
		return executor.Result{}, err
	}
	o := program.Options{
		Command: spec.GetCommand(), Model: spec.GetModel(), System: spec.GetSystem(), Prompt: firstMessage(spec),
		MaxTurns: int(spec.GetMaxTurns()), MaxCostUSD: spec.GetMaxCostUsd(),
		OnSession: func(id string) error {
			return l.add(ctx, session.Entry{Program: &session.Program{Session: id, Node: a.Identity.Node}})
		},
	}
	if len(o.Command) == 0 {
		o.Command = commands[spec.GetAgent()]
	}
	if s := spec.GetStallTimeout(); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return executor.Result{}, badSpec(fmt.Errorf("subagent spec: stallTimeout %q is no time; such as 10m", s))
		}
		o.StallTimeout = d
	}
	if schema := spec.GetOutputSchema(); schema != nil {
		text, err := protojson.Marshal(schema)
		if err != nil {
			return executor.Result{}, badSpec(err)
		}
		o.OutputSchema = string(text)
	}
	switch before := l.session.Program(); {
	case before.Session == "":
	case before.Node == a.Identity.Node:
		o.Resume = before.Session
	default:
		l.notify(fmt.Sprintf("session %s of the program is on node %s; it begins anew here", before.Session, before.Node))
	}
	result, report, err := program.Run(ctx, e.o.Shell, a, o, spawned)
	if err != nil {
		return result, err
	}
	result.Failure = report.Failure
	if report.Failure == nil && result.ExitCode == 0 && !result.Stopped {
		if err := l.finishProgram(report); err != nil {
			return result, err
		}
	}
	if report.Usage != nil {
		entry, err := session.ProgramUsage(report.Session, a.Identity.Node, report.Usage)
		if err != nil {
			return result, err
		}
		keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
		defer cancel()
		if err := l.add(keep, entry); err != nil {
			e.o.Logger.Warn("the usage of an agent was not recorded", "attempt", a.ID, "error", err)
		}
	}
	usage := l.session.Usage()
	usage.Session = report.Session
	result.Agent = &executor.AgentReport{Usage: usage, Before: l.before, Events: report.Events, Own: len(report.Events)}
	return result, nil
}

// finishProgram writes the output of an agent that a program has led to its answer.
func (l *loop) finishProgram(report program.Report) error {
	var output any = map[string]any{"text": report.Text}
	if object, ok := report.Output.(map[string]any); ok {
		output = object
	}
	return writeOutput(l.a.WorkspaceDir, l.a.Env["SWITCHYARD_OUTPUT"], output)
}
