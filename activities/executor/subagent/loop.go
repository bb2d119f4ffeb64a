package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/model"
	"switchyard/activities/executor/subagent/session"
	v1 "switchyard/proto/switchyard/v1"
)

// loop drives one agent in one attempt.
type loop struct {
	e      *Executor
	a      executor.Attempt
	spec   *v1.SubagentSpec
	client model.Client
	schema *answerSchema

	session *session.Session
	tools   toolbox
	output  textLog
	printed textLog // output of commands
	// before is the usage of earlier attempts, or nil if there were none. unreported is how many of their events no
	// attempt has reported.
	before     *v1.AgentUsage
	unreported int
	// corrections counts consecutive answers that did not match the schema.
	corrections int
}

// maxCorrections is how often an agent may correct its answer.
const maxCorrections = 3

// newLoop checks the requirements of an attempt. It starts nothing.
func (e *Executor) newLoop(ctx context.Context, a executor.Attempt, spec *v1.SubagentSpec) (*loop, error) {
	if err := e.checkTools(spec); err != nil {
		return nil, err
	}
	schema, err := newAnswerSchema(spec.GetOutputSchema())
	if err != nil {
		return nil, badSpec(fmt.Errorf("subagent spec: %w", err))
	}
	if err := e.checkPrices(spec); err != nil {
		return nil, err
	}
	key, err := e.key(a, spec)
	if err != nil {
		return nil, err
	}
	client, err := model.New(model.Options{Provider: spec.GetProvider(), BaseURL: spec.GetBaseUrl(), Key: key, HTTPClient: e.o.HTTPClient})
	if err != nil {
		return nil, badSpec(fmt.Errorf("subagent spec: %w", err))
	}
	return &loop{e: e, a: a, spec: spec, client: client, schema: schema, session: session.New(firstMessage(spec)), output: textLog{to: a.Stdout}, printed: textLog{to: a.Stderr}}, nil
}

// firstMessage returns the first message to the agent.
func firstMessage(spec *v1.SubagentSpec) string {
	if spec.GetContextSummary() == "" {
		return spec.GetPrompt()
	}
	return "What has happened so far:\n\n" + spec.GetContextSummary() + "\n\nYour task:\n\n" + spec.GetPrompt()
}

// start restores the state of earlier attempts and opens the tools.
func (l *loop) start(ctx context.Context) error {
	entries := 0
	if l.a.Journal != nil {
		for text, err := range l.a.Journal.Entries(ctx) {
			var entry session.Entry
			if err == nil {
				entry, err = session.Decode(text)
			}
			if err == nil {
				err = l.session.Add(entry)
			}
			if err != nil {
				return fmt.Errorf("restore the agent: %w", err)
			}
			entries++
		}
	}
	if err := l.tools.open(ctx, l, entries > 0); err != nil {
		return err
	}
	if turns := l.session.Usage().GetTurns(); turns > 0 {
		l.before, l.unreported = proto.CloneOf(l.session.Usage()), len(l.session.Events())
		l.notify(fmt.Sprintf("the agent continues after turn %d of an earlier attempt", turns))
	}
	return nil
}

// close closes the tools.
func (l *loop) close() {
	if err := l.tools.close(); err != nil {
		l.e.o.Logger.Warn("failed to close a tool of an agent", "attempt", l.a.ID, "error", err)
	}
}

func (l *loop) notify(line string) {
	if l.a.Notify != nil {
		l.output.endLine()
		l.a.Notify(line)
	}
}

// add records an entry and applies it to the session.
func (l *loop) add(ctx context.Context, entry session.Entry) error {
	if l.a.Lease.Lost() {
		return errLeaseLost
	}
	if l.a.Journal != nil {
		text, err := entry.Encode()
		if err != nil {
			return err
		}
		if err := l.a.Journal.Append(ctx, text); err != nil {
			return err
		}
	}
	return l.session.Add(entry)
}

// run drives the agent to its end. A Failure is the agent's. An error is that of ctx, or a fault of the node.
func (l *loop) run(ctx context.Context) (*executor.Failure, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		done, err := l.step(ctx)
		if end, ok := errors.AsType[*giveUp](err); ok {
			return end.failure(), nil
		}
		if done || err != nil {
			return nil, err
		}
	}
}

// step takes the next step of the agent and reports whether it was the last one.
func (l *loop) step(ctx context.Context) (done bool, err error) {
	if answer, stop, ok := l.session.Answer(); ok {
		return l.finish(ctx, answer, stop)
	}
	if err := l.checkLimits(); err != nil {
		return false, err
	}
	if pending := l.session.Pending(); len(pending) > 0 {
		return false, l.call(ctx, pending[0])
	}
	return false, l.turn(ctx)
}

// checkLimits returns a *giveUp if the agent has reached a limit.
func (l *loop) checkLimits() error {
	used := l.session.Usage()
	if err := checkCost(l.spec, used); err != nil {
		return err
	}
	if limit := l.spec.GetMaxTurns(); used.GetTurns() >= limit {
		return &giveUp{v1.ReasonMaxTurns, fmt.Errorf("the agent has taken %d turns without an answer; its limit is %d (raise it with `switchyard runs retry RUN --max-turns TASK=N`)", used.GetTurns(), limit)}
	}
	return nil
}

// turn asks the model and records the reply.
func (l *loop) turn(ctx context.Context) error {
	at := time.Now()
	reply, err := l.ask(ctx, model.Request{
		Model: l.spec.GetModel(), System: l.system(), Messages: l.session.Messages(), Tools: l.tools.models, MaxTokens: int(l.spec.GetMaxTokens()),
	})
	if err != nil {
		return err
	}
	took := time.Since(at)
	cost, _ := l.e.o.Prices.Cost(l.spec.GetModel(), reply.Usage)
	// A reply that arrives at the moment of a cancel is already paid for, so it is recorded.
	if err := l.add(context.WithoutCancel(ctx), session.Entry{Reply: &session.Reply{Reply: *reply, At: at, TookMs: took.Milliseconds(), Cost: cost}}); err != nil {
		return err
	}
	u := reply.Usage
	line := fmt.Sprintf("turn %d: %d tokens in, %d out, %.1f s", l.session.Usage().GetTurns(), u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, u.OutputTokens, took.Seconds())
	if cost > 0 {
		line += fmt.Sprintf(", $%.4f", cost)
	}
	l.notify(line)
	return nil
}

// finish accepts the latest reply as the answer, or asks the agent to correct or continue it.
func (l *loop) finish(ctx context.Context, answer string, stop model.Stop) (done bool, err error) {
	switch stop {
	case model.StopLength:
		return false, l.askAgain(ctx, fmt.Sprintf("Your reply was cut off after %d tokens. Continue exactly where it ends.", l.spec.GetMaxTokens()))
	case model.StopRefusal:
		return false, &giveUp{v1.ReasonProvider, fmt.Errorf("the model refused to answer: %s", firstWords(answer))}
	}
	var output any = map[string]any{"text": answer}
	if l.schema != nil {
		object, err := l.schema.parse(answer)
		if err != nil {
			if l.corrections++; l.corrections > maxCorrections {
				return false, &giveUp{v1.ReasonOutput, fmt.Errorf("the answer does not match outputSchema after %d corrections: %w", maxCorrections, err)}
			}
			return false, l.askAgain(ctx, fmt.Sprintf("Your answer does not match the JSON schema: %v\n\nReply with one JSON object that matches it, and nothing else.", err))
		}
		output = object
	}
	if err := writeOutput(l.a.Dirs.Workspace, l.a.Env["SWITCHYARD_OUTPUT"], output); err != nil {
		return false, err
	}
	return true, nil
}

// askAgain adds a note to the conversation, unless a limit is reached.
func (l *loop) askAgain(ctx context.Context, note string) error {
	if err := l.checkLimits(); err != nil {
		return err
	}
	return l.add(ctx, session.Entry{Note: note})
}

func firstWords(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// system returns the system prompt.
func (l *loop) system() string {
	text := l.spec.GetSystem()
	if text == "" {
		text = "You are an agent that carries out one task of a workflow. No human reads along: do not ask for permission, do the work, and end with your answer."
	}
	if l.tools.hasFiles() {
		text += "\n\nYour tools work in one directory, which is yours alone. Only your last message is passed on, so what others need must be in it."
	}
	if l.schema != nil {
		text += "\n\nYour last message must be one JSON object, and nothing else, that matches this JSON schema:\n" + l.schema.text
	}
	return text
}

// reportTimeout bounds how long an ended attempt takes to record its report.
const reportTimeout = 5 * time.Second

// report returns the agent report of the attempt.
func (l *loop) report(ctx context.Context) *executor.AgentReport {
	report := &executor.AgentReport{Usage: proto.CloneOf(l.session.Usage()), Before: l.before, Events: l.session.Events()}
	report.Own = len(report.Events) - l.unreported
	if len(report.Events) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
		defer cancel()
		if err := l.add(ctx, session.Entry{Reported: true}); err != nil {
			l.e.o.Logger.Debug("an agent will report its events once more", "attempt", l.a.ID, "error", err)
		}
	}
	return report
}

// unknownOutcome returns the result that the model reads for a call whose end was not recorded.
func unknownOutcome(c session.Call) string {
	return fmt.Sprintf("The outcome of this call is unknown: it began on node %s at %s, and the worker there was lost before it ended. "+
		"It may have taken effect, or a part of it. It was not repeated. Check the current state before you call again.",
		c.Began.Node, c.Began.At.UTC().Format(time.RFC3339))
}

// unescaped undoes the HTML escapes of encoding/json, for readability.
var unescaped = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// arguments returns the arguments of a call as one short line.
func arguments(raw json.RawMessage) string {
	text := unescaped.Replace(string(raw))
	const most = 120
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return text
}
