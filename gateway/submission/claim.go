package submission

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	"switchyard/workflows/names"
)

// claimSettled is the time after which a request that has claimed its key will no longer start a run that is still missing.
const claimSettled = time.Minute

// claimTimeout bounds how long a submit waits for the store.
const claimTimeout = 10 * time.Second

// describer describes runs. It is safe for concurrent use.
type describer interface {
	// Describe returns the newest execution of a run. The error is NotFound if there is none.
	Describe(ctx context.Context, id string) (*runview.Description, error)
}

// claims records in the store which run an idempotency key stands for.
type claims struct {
	store *store.Store
	runs  describer
	now   func() time.Time
	log   *slog.Logger
}

// claim records that an idempotency key stands for the run with the given id. It returns AlreadyExists if the key stands for a
// run of another workflow. While the store is down this cannot be checked and the run is started regardless; its id keeps the
// same request from starting two runs.
func (c claims) claim(ctx context.Context, key, by, id string) error {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	err := c.tryClaim(ctx, key, by, id)
	if err != nil && rpcerror.CodeOf(err) != connect.CodeAlreadyExists {
		c.log.Warn("cannot claim an idempotency key in the store", "run", id, "error", err)
		return nil
	}
	return err
}

func (c claims) tryClaim(ctx context.Context, key, by, id string) error {
	at, now := storekey.Request(ScopedKey(by, key)), c.now()
	note := []byte(id + " " + now.UTC().Format(time.RFC3339Nano))
	existed, err := c.store.PutIfAbsent(ctx, at, note)
	if err != nil || !existed {
		return err
	}
	before, err := c.store.Get(ctx, at)
	if err != nil {
		return err
	}
	first, since, _ := strings.Cut(string(before), " ")
	if first == id {
		return nil
	}
	_, err = c.runs.Describe(ctx, first)
	if claimed, bad := time.Parse(time.RFC3339Nano, since); rpcerror.CodeOf(err) == connect.CodeNotFound && (bad != nil || now.Sub(claimed) > claimSettled) {
		return c.store.Put(ctx, at, note) // the server has deleted the run, or the run never started
	}
	if err != nil && rpcerror.CodeOf(err) != connect.CodeNotFound {
		return err
	}
	return otherRequest(key, first)
}

func otherRequest(key, first string) error {
	return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf(
		"the idempotency key %q has started run %s with another definition or input; use another key, or submit the same", key, first))
}

// checkSameRequest returns AlreadyExists unless the run under an idempotency key was started by the same request.
func (c claims) checkSameRequest(ctx context.Context, id, key, print string) error {
	desc, err := c.runs.Describe(ctx, id)
	if err != nil {
		return err
	}
	if runview.MemoText(desc.GetWorkflowExecutionInfo(), names.RequestMemo) != print {
		return otherRequest(key, id)
	}
	return nil
}
