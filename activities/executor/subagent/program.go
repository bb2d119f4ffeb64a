package subagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/program"
	"switchyard/activities/executor/subagent/session"
	v1 "switchyard/proto/switchyard/v1"
)

// commands maps values of spec.agent to programs.
var commands = map[string][]string{v1.AgentClaudeCode: {"claude"}}

// InstalledPrograms returns, sorted, the values of spec.agent whose programs are in the PATH of this process.
func InstalledPrograms() []string {
	var installed []string
	for _, agent := range slices.Sorted(maps.Keys(commands)) {
		if _, err := exec.LookPath(commands[agent][0]); err == nil {
			installed = append(installed, agent)
		}
	}
	return installed
}

// runProgram runs an agent that is driven by a program on the node.
func (e *Executor) runProgram(ctx context.Context, a executor.Attempt, spec *v1.SubagentSpec, spawned func()) (executor.Result, error) {
	schema, err := newAnswerSchema(spec.GetOutputSchema())
	if err != nil {
		return executor.Result{}, badSpec(fmt.Errorf("subagent spec: %w", err))
	}
	l := &loop{e: e, a: a, spec: spec, schema: schema, session: session.New(firstMessage(spec))}
	if err := l.start(ctx); err != nil {
		if ctx.Err() != nil {
			return executor.Result{ExitCode: -1, Stopped: true}, nil
		}
		return executor.Result{}, err
	}
	if end, ok := errors.AsType[*giveUp](l.checkLimits()); ok {
		spawned()
		return executor.Result{ExitCode: -1, Failure: end.failure(), Agent: l.report(ctx)}, nil
	}
	// The limits apply to all attempts together, but the program counts only its own usage.
	used := l.session.Usage()
	o := program.Options{
		Command: spec.GetCommand(), Model: spec.GetModel(), System: spec.GetSystem(), Prompt: firstMessage(spec),
		MaxTurns: int(spec.GetMaxTurns() - used.GetTurns()), MaxCostUSD: costLeft(spec, used),
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
			return executor.Result{}, badSpec(fmt.Errorf("subagent spec: stallTimeout %q is not a positive duration such as 10m", s))
		}
		o.StallTimeout = d
	}
	if schema != nil {
		o.OutputSchema = schema.text
	}
	switch before := l.session.Program(); {
	case before.Session == "":
	case before.Node == a.Identity.Node:
		o.Resume = before.Session
	default:
		l.notify(fmt.Sprintf("session %s of the program is on node %s; starting a new session", before.Session, before.Node))
	}
	result, report, err := program.Run(ctx, e.o.Shell, a, o, spawned)
	if err != nil {
		return result, err
	}
	result.Failure = report.Failure
	if report.Failure == nil && result.ExitCode == 0 && !result.Stopped {
		if result.Failure, err = l.finishProgram(report); err != nil {
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

// finishProgram writes the output of an agent whose program has given an answer. An answer that does not match the
// schema is a failure.
func (l *loop) finishProgram(report program.Report) (*executor.Failure, error) {
	var output any = map[string]any{"text": report.Text}
	if l.schema != nil {
		answer := report.Text
		if report.Output != nil {
			answer = string(report.Output)
		}
		object, err := l.schema.parse(answer)
		if err != nil {
			return &executor.Failure{Reason: v1.ReasonOutput, Err: fmt.Errorf("the answer of the program does not match outputSchema: %w", err)}, nil
		}
		output = object
	}
	return nil, writeOutput(l.a.Dirs.Workspace, l.a.Env["SWITCHYARD_OUTPUT"], output)
}
