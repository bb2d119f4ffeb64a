package program

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	defaultStallTimeout = 10 * time.Minute
	defaultGrace        = 10 * time.Second
	// maxArgument is the longest argument in bytes; Linux starts no program with one of 128 KiB.
	maxArgument = 120 << 10
)

// Options say how a program leads an agent. Command and Prompt are required.
type Options struct {
	// Command is the program and its first arguments.
	Command []string
	// Model, System, MaxTurns, MaxCostUSD and OutputSchema (a JSON text) become arguments unless they are zero.
	Model, System string
	MaxTurns      int
	MaxCostUSD    float64
	OutputSchema  string
	// Prompt is what a new session is asked.
	Prompt string
	// Resume is the session of an earlier attempt on this node, or "" if there is none. A session that the program cannot
	// resume is replaced by a new one.
	Resume string
	// ResumePrompt is what a resumed session is asked; empty: to continue with Prompt.
	ResumePrompt string
	// StallTimeout is the longest time without a line; 0: 10 minutes.
	StallTimeout time.Duration
	// Grace is how long the program may take to exit after its result; 0: 10 seconds.
	Grace time.Duration
	// OnSession takes the id of a session when the program names it, or is nil. An error ends the attempt as a fault of the node.
	OnSession func(id string) error
}

// withDefaults fills in what may be left out and reports what cannot be used.
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
		return o, badSpec(fmt.Errorf("system has %d bytes; a program can be given at most %d", len(o.System), maxArgument))
	case len(o.OutputSchema) > maxArgument:
		return o, badSpec(fmt.Errorf("outputSchema has %d bytes; a program can be given at most %d", len(o.OutputSchema), maxArgument))
	case o.Resume != "" && !v1.IsSessionID(o.Resume):
		return o, fmt.Errorf("session %q of an earlier attempt is no id of a session", o.Resume)
	}
	return o, nil
}

func badSpec(err error) error {
	return &executor.StartError{ExitCode: 126, BadSpec: true, Err: err}
}

// argv returns the command of one run of the program.
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

// Report is what a program has said of its agent, in this attempt alone.
type Report struct {
	// Text is the answer, and Output the one that matches the schema, or nil if there is none.
	Text   string
	Output any
	Usage  *v1.AgentUsage
	// Events are the newest turns and calls of tools, oldest first.
	Events []*v1.AgentEvent
	// Session is what a later attempt on this node can resume; empty: there is none.
	Session string
	// Failure is why the attempt failed, or nil if it did not, or if its exit code or its signal tells.
	Failure *executor.Failure
}
