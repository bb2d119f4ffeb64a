package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/relay/session"
	"switchyard/activities/executor/subagent/program/streamjson"
	v1 "switchyard/proto/switchyard/v1"
)

// maxContext bounds the context file that is sent with a prompt, in bytes.
const maxContext = 32 << 20

// Executor runs tasks of type "claude_relay".
type Executor struct{ dir string }

var _ executor.Executor = (*Executor)(nil)

// New returns an executor for the sessions in a folder as returned by session.Folder.
func New(dir string) *Executor { return &Executor{dir: dir} }

// Type returns "claude_relay".
func (e *Executor) Type() string { return v1.TypeClaudeRelay }

// Capabilities returns none: attempts can only be run.
func (*Executor) Capabilities() executor.Capabilities { return executor.Capabilities{} }

// Run sends the task's message to a session. It keeps the contract of executor.Executor, with the connection to the
// session in place of a started program. An attempt that is stopped gives up its turn at once.
func (e *Executor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	stopped := executor.Result{ExitCode: -1, Stopped: true}
	if ctx.Err() != nil || a.Lease.Lost() {
		return stopped, nil
	}
	spec, err := parseSpec(a.Spec)
	if err != nil {
		return executor.Result{}, &executor.StartError{ExitCode: 126, BadSpec: true, Err: fmt.Errorf("claude_relay spec: %w", err)}
	}
	prompt, err := message(spec, a.Env["SWITCHYARD_INPUT"])
	if err != nil {
		return executor.Result{}, err
	}
	conn, err := session.Dial(ctx, e.dir, spec.GetTargetSessionId())
	if ctx.Err() != nil {
		return stopped, nil
	}
	if err != nil {
		return failed(v1.ReasonNoSession, err), nil
	}
	defer conn.Close()
	spawned()
	turn := &turn{transcript: streamjson.NewTranscript(time.Now), log: a.Stdout, notify: a.Notify}
	err = conn.Ask(ctx, prompt, spec.GetAwaitResponse(), session.Observer{Queued: turn.queued, Line: turn.line})
	switch {
	case ctx.Err() != nil:
		return turn.result(stopped, spec), nil
	case err != nil:
		return turn.result(failed(v1.ReasonNoSession, err), spec), nil
	case !spec.GetAwaitResponse():
		return executor.Result{}, turn.logErr
	}
	result := turn.result(executor.Result{}, spec)
	if result.Failure = turn.transcript.Failure(); result.Failure != nil {
		result.ExitCode = 1
		return result, turn.logErr
	}
	if path := a.Env["SWITCHYARD_OUTPUT"]; path != "" {
		output, err := json.Marshal(map[string]string{"text": turn.transcript.Text()})
		if err != nil {
			return result, err
		}
		if err := os.WriteFile(path, output, 0o600); err != nil {
			return result, errors.Join(fmt.Errorf("write the output: %w", err), turn.logErr)
		}
	}
	return result, turn.logErr
}

func failed(reason string, err error) executor.Result {
	return executor.Result{ExitCode: 1, Failure: &executor.Failure{Reason: reason, Err: err}}
}

// turn collects the outcome of one message.
type turn struct {
	transcript *streamjson.Transcript
	log        io.Writer // or nil
	logErr     error
	notify     func(string) // or nil
}

func (t *turn) queued(turns int) {
	if t.notify != nil {
		noun, verb := "messages", "come"
		if turns == 1 {
			noun, verb = "message", "comes"
		}
		t.notify(fmt.Sprintf("%d %s to the session %s first", turns, noun, verb))
	}
}

func (t *turn) line(line []byte, cut int64) {
	text := t.transcript.Add(line, cut)
	if text == "" || t.log == nil || t.logErr != nil {
		return
	}
	if _, err := io.WriteString(t.log, text); err != nil {
		t.logErr = fmt.Errorf("write the log: %w", err)
	}
}

// result adds the agent's usage and events to a result.
func (t *turn) result(r executor.Result, spec *v1.ClaudeRelaySpec) executor.Result {
	if usage := t.transcript.Usage(); usage.GetTurns() > 0 || t.transcript.Result != nil {
		usage.Session = spec.GetTargetSessionId()
		r.Agent = &executor.AgentReport{Usage: usage, Events: t.transcript.Events()}
	}
	return r
}

// parseSpec reads the spec of a task.
func parseSpec(s *structpb.Struct) (*v1.ClaudeRelaySpec, error) {
	if s == nil {
		return nil, errors.New("it is missing")
	}
	data, err := protojson.Marshal(s)
	if err != nil {
		return nil, err
	}
	spec := &v1.ClaudeRelaySpec{}
	if err := protojson.Unmarshal(data, spec); err != nil {
		// The position in the error refers to generated text.
		text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
		if _, after, found := strings.Cut(text, "): "); found {
			text = after
		}
		return nil, errors.New(text)
	}
	if strings.TrimSpace(spec.GetPrompt()) == "" {
		return nil, errors.New("prompt is empty")
	}
	return spec, session.CheckID(spec.GetTargetSessionId())
}

// message returns the prompt of a relay, with the task's inputs appended if the spec asks for them.
func message(spec *v1.ClaudeRelaySpec, inputFile string) (string, error) {
	if !spec.GetFullContext() || inputFile == "" {
		return spec.GetPrompt(), nil
	}
	f, err := os.Open(inputFile)
	if err != nil {
		return "", fmt.Errorf("read the context: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxContext+1))
	if err != nil {
		return "", fmt.Errorf("read the context: %w", err)
	}
	if len(text) > maxContext {
		return "", &executor.StartError{ExitCode: 126, BadSpec: true, Err: fmt.Errorf("the context is larger than %d MiB; omit fullContext and put the necessary facts in the prompt", maxContext>>20)}
	}
	return spec.GetPrompt() + "\n\nThe context of the run and the outputs of the tasks before, as JSON:\n" + string(text), nil
}
