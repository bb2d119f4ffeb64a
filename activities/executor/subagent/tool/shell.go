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
	// maxCommand bounds the length of a command, in bytes. It is far below Linux's limit for one argument (128 KiB).
	maxCommand = 96 << 10
)

// ErrNoSandbox reports that commands of an agent cannot run on this node.
var ErrNoSandbox = errors.New("this node cannot sandbox the commands of an agent; set `image` in the spec to run them in a container, or require a node with the capability `sandbox`")

// Sandboxer is an executor that runs commands in a sandbox, such as the executor of shell tasks.
type Sandboxer interface {
	executor.Executor

	// Batch is that of executor.Capabilities.
	Batch(id string, lease *executor.Lease) (executor.Batch, error)

	// CanSandbox returns why this node cannot create sandboxes, or nil.
	CanSandbox() error
}

// ShellOptions configure where the commands of an agent run.
type ShellOptions struct {
	// Attempt is the agent's attempt. Each command runs as a copy of it with its own spec, output and id, and a grace
	// period of at most 10 seconds.
	Attempt executor.Attempt
	// Hidden names variables in Attempt.Env that hold secrets. Commands get neither these nor those in alwaysHidden.
	Hidden []string
	// Sandbox runs commands in a sandbox. It may be nil if Image is set.
	Sandbox Sandboxer
	// Image is the image in which Container runs commands. If it is empty, they run in a sandbox.
	Image     string
	Container executor.Executor
	// NodeNetwork gives commands the network of the node, or in a container the engine's own. Otherwise they have no
	// network.
	NodeNetwork bool
	// Output also receives the output of commands, up to 64 MiB each, from one goroutine at a time. It may be nil.
	Output io.Writer
}

// alwaysHidden lists variables that hold credentials wherever they are set.
var alwaysHidden = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "SWITCHYARD_TOKEN",
}

// Shell is the tool that runs commands. Its commands run one at a time, in a sandbox of one user, or each in a
// container of its own. The caller must call Close.
type Shell struct {
	tree *Tree
	o    ShellOptions
	env  map[string]string

	// The goroutine that has acquired the tree owns the following fields.

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

// Definition returns the description for the model.
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

// Check returns why commands cannot run: ErrNoSandbox, a *executor.StartError for an image that no node can use, or a
// fault of this node, such as an image that it cannot pull. Unless a command has run before, Check runs one, which
// pulls the image.
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
	// What was restored before still belongs to the worker's own user.
	if err := s.tree.adopt(); err != nil {
		return fmt.Errorf("give the work directory to the sandbox: %w", err)
	}
	s.checked = true
	return nil
}

// Causes for ending a command.
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

// outcomeOf returns the outcome of a command that has ended.
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
		status += ": killed by the kernel: it exceeded the memory limit of the task"
	case result.Signal != "":
		status += ": killed by " + result.Signal
	}
	return Outcome{Text: status + "\n" + text, IsError: result.Stopped || result.ExitCode != 0}, nil
}

// stopCause returns why a command was stopped from outside.
func stopCause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.New("the lease of the attempt is lost")
}

// run executes one command, in the image of the tools or else in the sandbox, and returns its result.
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

// oneStream precedes a command, so that standard error appears in order within its output.
const oneStream = "exec 2>&1; "

// spec returns the spec of a task that runs a command. The model chooses only the command.
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
		// The worker must be able to read and replace files that the image's user creates.
		"image": s.o.Image, "entrypoint": []any{"sh", "-c"}, "command": []any{"umask 0; " + oneStream + command},
		"workingDirectory": path.Join(container.WorkspaceDir, WorkDir),
	}
	if !s.o.NodeNetwork {
		fields["network"] = "none"
	}
	return structpb.NewStruct(fields)
}

// Close ends the use of the sandbox. It waits for a call in progress. A second Close is a no-op.
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
