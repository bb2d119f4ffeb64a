package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	defaultStallTimeout = 10 * time.Minute
	defaultGrace        = 10 * time.Second
	// maxArgument bounds the length of an argument in bytes. Linux refuses to start a program with an argument of 128
	// KiB.
	maxArgument = 120 << 10
)

// Options describe the program and its agent. Command and Prompt are required.
type Options struct {
	// Command is the program and its first arguments.
	Command []string
	// Model, System, MaxTurns, MaxCostUSD and OutputSchema (a JSON text) become arguments unless they are zero.
	Model, System string
	MaxTurns      int
	MaxCostUSD    float64
	OutputSchema  string
	// Prompt is the prompt of a new session.
	Prompt string
	// Resume is the session of an earlier attempt on this node, or "" if there is none. If the program cannot resume
	// it, a new session replaces it.
	Resume string
	// ResumePrompt is the prompt of a resumed session. If it is empty, the session is asked to continue with Prompt.
	ResumePrompt string
	// StallTimeout is the longest time without a line; 0 means 10 minutes.
	StallTimeout time.Duration
	// Grace is how long the program may take to exit after its result; 0 means 10 seconds.
	Grace time.Duration
	// OnSession receives the id of a session when the program reports it. It may be nil. An error ends the attempt as a
	// fault of the node.
	OnSession func(id string) error
}

// withDefaults sets defaults and validates the options.
func (o Options) withDefaults() (Options, error) {
	if o.StallTimeout <= 0 {
		o.StallTimeout = defaultStallTimeout
	}
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	switch {
	case len(o.Command) == 0:
		return o, badSpec(errors.New("command is empty"))
	case len(o.System) > maxArgument:
		return o, badSpec(fmt.Errorf("system has %d bytes; the limit for a program is %d", len(o.System), maxArgument))
	case len(o.OutputSchema) > maxArgument:
		return o, badSpec(fmt.Errorf("outputSchema has %d bytes; the limit for a program is %d", len(o.OutputSchema), maxArgument))
	case o.Resume != "" && !v1.IsSessionID(o.Resume):
		return o, fmt.Errorf("session id %q of an earlier attempt is invalid", o.Resume)
	}
	return o, nil
}

func badSpec(err error) error {
	return &executor.StartError{ExitCode: 126, BadSpec: true, Err: err}
}

// argv returns the command line for one run of the program.
func (o Options) argv() []string {
	argv := append([]string(nil), o.Command...)
	argv = append(argv, "-p", "--output-format", "stream-json", "--verbose")
	if o.Model != "" {
		argv = append(argv, "--model", o.Model)
	}
	if o.MaxTurns > 0 {
		argv = append(argv, "--max-turns", strconv.Itoa(o.MaxTurns))
	}
	if o.MaxCostUSD > 0 {
		argv = append(argv, "--max-budget-usd", strconv.FormatFloat(o.MaxCostUSD, 'f', -1, 64))
	}
	if o.System != "" {
		argv = append(argv, "--append-system-prompt", o.System)
	}
	if o.OutputSchema != "" {
		argv = append(argv, "--json-schema", o.OutputSchema)
	}
	if o.Resume != "" {
		argv = append(argv, "--resume", o.Resume)
	}
	return argv
}

// prompt returns what the program reads on its standard input.
func (o Options) prompt() string {
	switch {
	case o.Resume == "":
		return o.Prompt
	case o.ResumePrompt != "":
		return o.ResumePrompt
	}
	return "You were interrupted. Continue from where you stopped. A call of a tool that has no result may have taken effect or " +
		"not: check before you repeat it.\n\nThe task is:\n\n" + o.Prompt
}

// Report is what a program reported about its agent, in this attempt only.
type Report struct {
	// Text is the answer. Output is the answer that matches the schema, or nil if there is none.
	Text   string
	Output json.RawMessage
	Usage  *v1.AgentUsage
	// Events are the newest turns and tool calls, oldest first.
	Events []*historyv1.AgentEvent
	// Session is the session that a later attempt on this node can resume, or "".
	Session string
	// Failure is why the attempt failed. It is nil if the attempt did not fail, or if its exit code or signal explains
	// the failure.
	Failure *executor.Failure
}
