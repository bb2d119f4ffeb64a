package subagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/model"
	"switchyard/activities/executor/subagent/tool"
	v1 "switchyard/proto/switchyard/v1"
)

// Options configure an Executor.
type Options struct {
	// Shell runs sandboxed commands of agents, MCP servers, and programs that drive agents.
	Shell tool.Sandboxer
	// Container runs the commands of agents whose spec names an image.
	Container executor.Executor
	// Tools names the tools that the node allows.
	Tools []string
	// FetchHosts lists the hosts that the node allows the tool "fetch" to read.
	FetchHosts []string
	// KeyFiles maps providers to key files, for tasks that bring no key.
	KeyFiles map[string]string
	// Prices holds the prices of models.
	Prices model.Prices
	// Gateway returns the gateway for the tool "fleet" unless the task names another. It may return "", and is called
	// for each attempt.
	Gateway func() string
	// HTTPClient sends requests to models. If it is nil, New creates a client that keeps a connection for each of many
	// agents.
	HTTPClient *http.Client
	Logger     *slog.Logger
}

// Executor runs tasks of type "subagent". It is safe for concurrent use.
type Executor struct {
	o Options
	// patience and firstPause are described in provider.go.
	patience, firstPause time.Duration
}

var _ executor.Executor = (*Executor)(nil)

// New returns an Executor.
func New(o Options) *Executor {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Gateway == nil {
		o.Gateway = func() string { return "" }
	}
	if o.HTTPClient == nil {
		o.HTTPClient = newHTTPClient()
	}
	return &Executor{o: o, patience: defaultPatience, firstPause: defaultFirstPause}
}

// maxIdleConnections bounds the idle connections to one provider that are kept for the next turn.
const maxIdleConnections = 512

// newHTTPClient returns a client for all agents of a node. The default client keeps two idle connections per provider,
// so that most turns would need a new connection with its handshake.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = maxIdleConnections, maxIdleConnections
	return &http.Client{Transport: transport}
}

// Type returns "subagent".
func (e *Executor) Type() string { return v1.TypeSubagent }

// Capabilities returns none: attempts can only be run.
func (*Executor) Capabilities() executor.Capabilities { return executor.Capabilities{} }

// Run drives an agent to its answer and writes the answer to the file SWITCHYARD_OUTPUT. A reached limit, a refusal and
// a provider that is unavailable for too long are Results with a Failure. An unusable spec is a *executor.StartError.
func (e *Executor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	if ctx.Err() != nil || a.Lease.Lost() {
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	}
	spec, err := parseSpec(a.Spec)
	if err != nil {
		return executor.Result{}, badSpec(err)
	}
	if isProgram(spec) {
		return e.runProgram(ctx, a, spec, spawned)
	}
	l, err := e.newLoop(ctx, a, spec)
	if err == nil {
		err = l.start(ctx)
	}
	if l != nil {
		defer l.close()
	}
	if err != nil {
		if ctx.Err() != nil {
			return executor.Result{ExitCode: -1, Stopped: true}, nil
		}
		return executor.Result{}, err
	}
	if ctx.Err() != nil || a.Lease.Lost() {
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	}
	spawned()
	failure, err := l.run(ctx)
	l.output.endLine()
	if err != nil && ctx.Err() == nil && !a.Lease.Lost() {
		return executor.Result{}, err
	}
	result := executor.Result{Failure: failure, Stopped: err != nil}
	if failure != nil || err != nil {
		result.ExitCode = -1
	}
	result.Agent = l.report(ctx)
	return result, l.output.err
}

// badSpec returns the error for a spec that no attempt can start with.
func badSpec(err error) error {
	return &executor.StartError{ExitCode: codeCannotRun, BadSpec: true, Err: err}
}

// cannotStart returns the error for an attempt that cannot start on this node.
func cannotStart(err error) error {
	if executor.AsStartError(err) != nil {
		return err
	}
	return &executor.StartError{ExitCode: codeCannotRun, Err: err}
}

// codeCannotRun is the exit code for a program that cannot be run, as in a shell.
const codeCannotRun = 126

// errLeaseLost ends an attempt that another node may have been given.
var errLeaseLost = errors.New("the lease of the attempt is lost")

func wrapFault(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }
