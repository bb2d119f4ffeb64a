package submission

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

const (
	// TaskTimeout is the time after which a workflow task of a dead worker moves to another one. It lets a dead
	// owner of the control queue be replaced well within 10 s.
	TaskTimeout = 6 * time.Second
	// idAttempts is how often a fresh id is drawn before giving up.
	idAttempts = 3
)

// Start starts the workflow of a run and returns the run's id: a fresh one, or the one that belongs to an idempotency
// key. existed reports that the same request had already started the run.
func (s *Submitter) Start(ctx context.Context, in *historyv1.RunInput, trigger, key string) (id string, existed bool, err error) {
	name := in.GetDefinition().GetName()
	if err := s.checkQuota(ctx, name, in.GetBy(), key); err != nil {
		return "", false, err
	}
	sent, err := Pack(in)
	if err != nil {
		return "", false, err
	}
	attributes := visibility.Started(name, trigger, s.Now())
	attributes.AddOrigin(in.GetBy(), in.GetBatch())
	memo := map[string]any{}
	attempts := idAttempts
	claims := claims{store: s.Store, runs: s.Reader, now: s.Now, log: s.Log}
	if key != "" {
		memo[names.KeyMemo] = key
		if memo[names.RequestMemo], err = fingerprint(in, key); err != nil {
			return "", false, err
		}
		if err := claims.claim(ctx, key, in.GetBy(), names.KeyedRunID(name, ScopedKey(in.GetBy(), key))); err != nil {
			return "", false, err
		}
		attempts = 1
	}
	for range attempts {
		id = names.NewRunID(name)
		if key != "" {
			id = names.KeyedRunID(name, ScopedKey(in.GetBy(), key))
		}
		if err := s.keepSource(ctx, in, id); err != nil {
			return "", false, err
		}
		_, err = s.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID:                       id,
			TaskQueue:                names.ControlQueue,
			WorkflowTaskTimeout:      TaskTimeout,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
			WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
			Memo:                     memo,
			TypedSearchAttributes:    attributes.Typed(),
			StaticSummary:            runSummary(in.GetDefinition()),
			StaticDetails:            runDetails(in.GetDefinition()),

			WorkflowExecutionErrorWhenAlreadyStarted: true,
		}, names.RunWorkflow, sent)
		if rpcerror.CodeOf(err) != connect.CodeAlreadyExists {
			break
		}
	}
	if key != "" && rpcerror.CodeOf(err) == connect.CodeAlreadyExists {
		return id, true, claims.checkSameRequest(ctx, id, key, memo[names.RequestMemo].(string))
	}
	if err == nil {
		s.Index.AddSubmitted(id, in.GetBy(), attributes.Submitted)
	}
	return id, false, withOutcome(ctx, err, name, key)
}

// withOutcome adds to the error of a start how to find out whether a run has started, unless that is certain.
func withOutcome(ctx context.Context, err error, name, key string) error {
	code := rpcerror.CodeOf(err)
	switch {
	case ctx.Err() != nil, code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded:
		return err
	case key != "":
		return fmt.Errorf("%w; it may have started: with the same idempotency key, the request can be repeated safely", err)
	}
	return fmt.Errorf("%w; it may have started; `switchyard runs list --workflow %s` tells", err, name)
}
