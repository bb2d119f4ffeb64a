package nodeaccess

import (
	"context"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/grants"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// refusedFor is how long a refusal holds without another question to Temporal.
	refusedFor = time.Second
	// maxRefused bounds the refusals that are remembered.
	maxRefused = 4096
)

// Access decides what callers reach of the values of runs. It is safe for concurrent use.
type Access struct {
	grants   *grants.Grants
	attempts Attempts
	reader   *runview.Reader

	mu      sync.Mutex
	refused map[grants.Grant]time.Time // until when
}

// New returns the access to the values of runs whose grants are known.
func New(g *grants.Grants, attempts Attempts, reader *runview.Reader) *Access {
	return &Access{grants: g, attempts: attempts, reader: reader, refused: map[grants.Grant]time.Time{}}
}

// Node returns the node whose token the caller of ctx has, or "" if authentication is off and each caller may do all. Tokens
// of people are refused: they open runs, and not what runs have in the store.
func Node(ctx context.Context) (string, error) {
	switch p := auth.From(ctx); {
	case !p.IsVerified() && p.Role == v1.Role_ROLE_ADMIN:
		return "", nil
	case p.Role == v1.Role_ROLE_NODE && p.Node != "":
		return p.Node, nil
	default:
		return "", connect.NewError(connect.CodePermissionDenied, fmt.Errorf("the store of runs is for tokens of nodes; %s has the role %s", p.Name, p.Role.Word()))
	}
}

// CheckRead returns an error unless the caller may read the values of a run.
func (a *Access) CheckRead(ctx context.Context, run string) error {
	node, err := Node(ctx)
	if err != nil || node == "" {
		return err
	}
	given := grants.Grant{Node: node, Run: run}
	ok, err := a.grants.HasRun(ctx, node, run)
	if err == nil && !ok {
		ok, err = a.runs(ctx, given)
	}
	switch {
	case err != nil:
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("cannot find out whether node %s was given a task of run %s: %w", node, run, err))
	case !ok:
		return a.refuse(given, "node %s was given no task of run %s, and reads nothing of it", node, run)
	}
	return nil
}

// CheckWrite returns an error unless the caller may store a value of a task.
func (a *Access) CheckWrite(ctx context.Context, key storekey.NodeKey) error {
	node, err := Node(ctx)
	if err != nil || node == "" {
		return err
	}
	given := grants.Grant{Node: node, Run: key.Run, Chain: key.Chain, Task: key.Task}
	ok, err := a.grants.Has(ctx, given)
	if err == nil && !ok {
		if ok, err = a.runs(ctx, given); ok {
			err = a.grants.Put(ctx, given)
		}
	}
	switch {
	case err != nil:
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("cannot find out whether node %s was given task %s of run %s: %w", node, key.Task, key.Run, err))
	case !ok:
		return a.refuse(given, "node %s was not given task %s of run %s, and stores nothing of it", node, key.Task, key.Run)
	}
	return nil
}

// runs reports whether a node runs a task of a chain now, or of a run if no chain is named.
func (a *Access) runs(ctx context.Context, given grants.Grant) (bool, error) {
	a.mu.Lock()
	until := a.refused[given]
	a.mu.Unlock()
	if time.Now().Before(until) {
		return false, nil
	}
	desc, err := a.attempts.Find(ctx, Attempt{Node: given.Node, Run: given.Run, Task: given.Task, Claim: -1})
	if err != nil || desc == nil || given.Chain == "" {
		return desc != nil, err
	}
	in, err := a.reader.Input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	return err == nil && in.GetChain() == given.Chain, err
}

// refuse returns an error for what a node was not given.
func (a *Access) refuse(given grants.Grant, format string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.refused) >= maxRefused {
		clear(a.refused)
	}
	a.refused[given] = time.Now().Add(refusedFor)
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf(format, args...))
}
