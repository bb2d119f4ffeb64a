package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container"
)

const (
	defaultTimeout = 10 * time.Minute
	maxTimeout     = time.Hour
	// maxGrace bounds how long a command may take to end after SIGTERM.
	maxGrace = 10 * time.Second
	// maxCommand bounds a command, far below what Linux takes as one argument (128 KiB).
	maxCommand = 96 << 10
)

// ErrNoSandbox says that commands of an agent cannot run on this node.
var ErrNoSandbox = errors.New("this node cannot run commands of an agent in a sandbox; name an `image` in the spec, so that they run in a container, or require a node with the capability `sandbox`")

// Sandboxer is an executor that runs commands in a sandbox, such as the one of shell tasks.
type Sandboxer interface {
	executor.Batcher

	// CanSandbox returns why no sandbox can be made here, or nil.
	CanSandbox() error
}

// ShellOptions say where the commands of an agent run.
type ShellOptions struct {
	// Attempt is the agent's. Each command is an attempt like it, but for its spec, its output and its id, and with a
	// grace period of at most 10 seconds.
	Attempt executor.Attempt
	// Hidden are the names of variables in Attempt.Env that hold secrets, which no command gets, beside those that always do.
	Hidden []string
	// Sandbox runs commands in a sandbox; it may be nil where Image is set.
	Sandbox Sandboxer
	// Image is the image that commands run in, by Container; empty: they run in a sandbox.
	Image     string
	Container executor.Executor
	// NodeNetwork gives commands the network of the node, or the engine's own in a container. They have none otherwise.
	NodeNetwork bool
	// Output takes what commands print as well, up to 64 MiB of each; nil: nothing does. It is written to by one
	// goroutine at a time.
	Output io.Writer
}

// alwaysHidden are variables that hold credentials wherever they are set.
var alwaysHidden = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "SWITCHYARD_TOKEN",
}

// Shell is the tool that runs commands. Its commands run one after the other, in a sandbox of one user, or each in a
// container of its own. Close must be called.
type Shell struct {
	tree *Tree
	o    ShellOptions
	env  map[string]string

	// The rest belongs to whoever has the turn of the tree.

	batch   executor.Batch
	ran     int
	checked bool
	closed  bool
}

var _ Tool = (*Shell)(nil)

// NewShell returns the tool. It starts nothing.
func NewShell(tree *Tree, o ShellOptions) *Shell {
	env := maps.Clone(o.Attempt.Env)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return slices.Contains(alwaysHidden, name) || slices.Contains(o.Hidden, name)
	})
	return &Shell{tree: tree, o: o, env: env}
}

// Definition describes the tool.
func (s *Shell) Definition() Definition {
	where := "in a sandbox"
	if s.o.Image != "" {
		where = "in a container of the image " + s.o.Image
	}
	network := "It has no network."
	if s.o.NodeNetwork {
		network = "It has the network."
	}
	return Definition{
		Name: "shell",
		Description: fmt.Sprintf("Runs a command by `sh -c` %s, in the work directory, and returns its exit code and what it printed, of which at most the first and the last %d KiB are shown. %s Standard input is empty. "+
			"Files in the work directory stay for later calls; processes do not: what a command leaves in the background is ended with it.", where, shownHead>>10, network),
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
			`"command":{"type":"string","description":"The command, one line or a script."},`+
			`"timeoutSeconds":{"type":"integer","minimum":1,"maximum":%d,"description":"Ends the command after so many seconds; %d if it is left out."}},`+
			`"required":["command"],"additionalProperties":false}`, int(maxTimeout.Seconds()), int(defaultTimeout.Seconds()))),
	}
}

// Check returns why commands cannot run: ErrNoSandbox, a *executor.StartError of an image that is of no use on any node, or
// a fault of this node, such as an image that it cannot pull. Unless a command has run before, Check runs one, for which
// the image is pulled.
func (s *Shell) Check(ctx context.Context) error {
	release, err := s.tree.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return s.check(ctx)
}

func (s *Shell) check(ctx context.Context) error {
	if s.checked {
		return nil
	}
	if s.o.Image == "" {
		if s.o.Sandbox == nil {
			return ErrNoSandbox
		}
		if err := s.o.Sandbox.CanSandbox(); err != nil {
			return fmt.Errorf("%w: %w", ErrNoSandbox, err)
		}
	} else if s.o.Container == nil {
		return fmt.Errorf("commands of the agent cannot run in image %s: this node has no container engine; require a node with the capability `container`", s.o.Image)
	}
	out := &output{max: maxPrinted, flooded: func() {}}
	result, err := s.run(ctx, "true", out)
	switch {
	case err != nil:
		return fmt.Errorf("try a command of the agent: %w", err)
	case result.Stopped:
		return stopCause(ctx)
	case result.ExitCode != 0:
		return fmt.Errorf("try a command of the agent: `true` ended with exit code %d: %s", result.ExitCode, out.text())
	}
	// What was restored before has the worker's own user yet.
	if err := s.tree.adopt(); err != nil {
		return fmt.Errorf("give the work directory to the sandbox: %w", err)
	}
	s.checked = true
	return nil
}

// Causes for which a command is ended.
var (
	errFlood   = errors.New("it printed too much")
	errTimeout = errors.New("it took too long")
)

// Call runs a command.
func (s *Shell) Call(ctx context.Context, call Call) (Outcome, error) {
	var args struct {
		Command        string  `json:"command"`
		TimeoutSeconds float64 `json:"timeoutSeconds"`
	}
	if err := parseArguments(call, &args); err != nil {
		return failure("%v", err), nil
	}
	switch {
	case strings.TrimSpace(args.Command) == "":
		return failure("the argument \"command\" is empty"), nil
	case len(args.Command) > maxCommand:
		return failure("the command has %d bytes; at most %d can be run: write a script to a file and run that", len(args.Command), maxCommand), nil
	}
	timeout := defaultTimeout
	if args.TimeoutSeconds > 0 {
		timeout = time.Duration(min(args.TimeoutSeconds, maxTimeout.Seconds()) * float64(time.Second))
	}
	release, err := s.tree.acquire(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	if err := s.check(ctx); err != nil {
		return Outcome{}, err
	}
	limited, end := context.WithCancelCause(ctx)
	defer end(nil)
	limited, cancel := context.WithTimeoutCause(limited, timeout, errTimeout)
	defer cancel()
	out := &output{sink: s.o.Output, max: maxPrinted, flooded: func() { end(errFlood) }}
	result, err := s.run(limited, args.Command, out)
	if start := executor.AsStartError(err); start != nil {
		return failure("the command could not be started: %v", start), nil
	}
	if err != nil {
		return Outcome{}, err
	}
	return outcomeOf(ctx, context.Cause(limited), result, timeout, out)
}

// outcomeOf says how a command ended.
func outcomeOf(ctx context.Context, cause error, result executor.Result, timeout time.Duration, out *output) (Outcome, error) {
	text := out.text()
	if text == "" {
		text = "(no output)"
	}
	status := fmt.Sprintf("exit code %d", result.ExitCode)
	switch {
	case result.Stopped && errors.Is(cause, errFlood):
		status = fmt.Sprintf("the command was ended: it printed more than %d MiB; write to a file instead, or print less", maxPrinted>>20)
	case result.Stopped && errors.Is(cause, errTimeout):
		status = fmt.Sprintf("the command was ended: it ran longer than %s", timeout)
	case result.Stopped:
		return Outcome{}, stopCause(ctx)
	case result.OOMKilled:
		status += ": the kernel ended it, because it needed more memory than the task has"
	case result.Signal != "":
		status += ": ended by " + result.Signal
	}
	return Outcome{Text: status + "\n" + text, IsError: result.Stopped || result.ExitCode != 0}, nil
}

// stopCause returns why a command was ended from outside.
func stopCause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.New("the lease of the attempt is lost")
}

// run runs one command to its end.
func (s *Shell) run(ctx context.Context, command string, out *output) (executor.Result, error) {
	if s.closed {
		return executor.Result{}, errors.New("the tools of the agent are closed")
	}
	root, err := s.tree.open()
	if err != nil {
		return executor.Result{}, err
	}
	root.Close()
	s.ran++
	a := s.o.Attempt
	a.ID = fmt.Sprintf("%s/t%d", a.ID, s.ran)
	a.Env, a.Stdout, a.Stderr = maps.Clone(s.env), out, out
	a.Stdin, a.Journal = nil, nil
	a.Grace = min(a.Grace, maxGrace)
	if a.Spec, err = s.spec(command); err != nil {
		return executor.Result{}, &executor.StartError{ExitCode: 126, Err: err}
	}
	if s.o.Image != "" {
		return s.o.Container.Run(ctx, a, func() {})
	}
	if s.batch == nil {
		if s.batch, err = s.o.Sandbox.Batch(s.o.Attempt.ID, a.Lease); err != nil {
			return executor.Result{}, err
		}
	}
	return s.batch.Run(ctx, a, func() {})
}

// oneStream goes before a command, so that its errors stand where they belong in its output.
const oneStream = "exec 2>&1; "

// spec returns the spec of a task that runs a command. The model chooses the command and nothing else.
func (s *Shell) spec(command string) (*structpb.Struct, error) {
	if s.o.Image == "" {
		network := "none"
		if s.o.NodeNetwork {
			network = "node"
		}
		return structpb.NewStruct(map[string]any{
			"command": []any{"sh", "-c", oneStream + command}, "sandbox": true, "network": network, "workingDirectory": s.tree.Path(),
		})
	}
	fields := map[string]any{
		// The worker reads and replaces what the image's user makes.
		"image": s.o.Image, "entrypoint": []any{"sh", "-c"}, "command": []any{"umask 0; " + oneStream + command},
		"workingDirectory": path.Join(container.WorkspaceDir, WorkDir),
	}
	if !s.o.NodeNetwork {
		fields["network"] = "none"
	}
	return structpb.NewStruct(fields)
}

// Close ends the use of the sandbox. It waits for a call that runs. A second Close does nothing.
func (s *Shell) Close() error {
	release, err := s.tree.acquire(context.Background())
	if err != nil {
		return err
	}
	defer release()
	s.closed = true
	if s.batch == nil {
		return nil
	}
	batch := s.batch
	s.batch = nil
	return batch.Close()
}
