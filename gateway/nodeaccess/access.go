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
	// refusedFor is how long a refusal is cached before Temporal is queried again.
	refusedFor = time.Second
	// maxRefused bounds the number of cached refusals.
	maxRefused = 4096
)

// Access authorises callers to read and write values of runs. It is safe for concurrent use.
type Access struct {
	grants   *grants.Grants
	attempts Attempts
	reader   *runview.Reader

	mu      sync.Mutex
	refused map[grants.Grant]time.Time // expiry of each cached refusal
}

// New returns an Access that checks the given grants first and then the running attempts.
func New(g *grants.Grants, attempts Attempts, reader *runview.Reader) *Access {
	return &Access{grants: g, attempts: attempts, reader: reader, refused: map[grants.Grant]time.Time{}}
}

// Node returns the node that the caller's token belongs to, or "" if authentication is off and every caller may do
// everything. Tokens of people are refused: they give access to runs, but not to their values in the store.
func Node(ctx context.Context) (string, error) {
	switch p := auth.From(ctx); {
	case !p.IsVerified() && p.Role == v1.Role_ROLE_ADMIN:
		return "", nil
	case p.Role == v1.Role_ROLE_NODE && p.Node != "":
		return p.Node, nil
	default:
		return "", connect.NewError(connect.CodePermissionDenied, fmt.Errorf("only node tokens may access the store of runs; %s has the role %s", p.Name, p.Role.Word()))
	}
}

// CheckRead returns an error if the caller may not read the values of a run.
func (a *Access) CheckRead(ctx context.Context, run string) error {
	node, err := Node(ctx)
	if err != nil || node == "" {
		return err
	}
	given := grants.Grant{Node: node, Run: run}
	ok, err := a.grants.HasRun(ctx, node, run)
	if err == nil && !ok {
		ok, err = a.isRunning(ctx, given)
	}
	switch {
	case err != nil:
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("cannot verify that node %s was given a task of run %s: %w", node, run, err))
	case !ok:
		return a.refuse(given, "node %s was not given a task of run %s and may not read its values", node, run)
	}
	return nil
}

// CheckWrite returns an error if the caller may not store a value of a task.
func (a *Access) CheckWrite(ctx context.Context, key storekey.NodeKey) error {
	node, err := Node(ctx)
	if err != nil || node == "" {
		return err
	}
	given := grants.Grant{Node: node, Run: key.Run, Chain: key.Chain, Task: key.Task}
	ok, err := a.grants.Has(ctx, given)
	if err == nil && !ok {
		if ok, err = a.isRunning(ctx, given); ok {
			err = a.grants.Put(ctx, given)
		}
	}
	switch {
	case err != nil:
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("cannot verify that node %s was given task %s of run %s: %w", node, key.Task, key.Run, err))
	case !ok:
		return a.refuse(given, "node %s was not given task %s of run %s and may not store its values", node, key.Task, key.Run)
	}
	return nil
}

// isRunning reports whether the node of a grant runs the task of its chain now, or any task of the run if the grant names no
// chain.
func (a *Access) isRunning(ctx context.Context, given grants.Grant) (bool, error) {
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

// refuse caches the refusal of a grant and returns the error for it.
func (a *Access) refuse(given grants.Grant, format string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.refused) >= maxRefused {
		clear(a.refused)
	}
	a.refused[given] = time.Now().Add(refusedFor)
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf(format, args...))
}
