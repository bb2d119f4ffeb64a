package submission

import (
	"context"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	"switchyard/workflows/names"
)

// claimSettled is the time after which a request that has claimed its key will no longer start a run that is still missing.
const claimSettled = time.Minute

// claimTimeout bounds how long a submit waits for the store.
const claimTimeout = 10 * time.Second

// claim records that an idempotency key stands for the run with the given id. It returns AlreadyExists if the key stands for a
// run of another workflow. While the store is down this cannot be checked and the run is started regardless; its id keeps the
// same request from starting two runs.
func (s *Submitter) claim(ctx context.Context, key, by, id string) error {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	err := s.tryClaim(ctx, key, by, id)
	if err != nil && rpcerror.CodeOf(err) != connect.CodeAlreadyExists {
		s.Log.Warn("cannot claim an idempotency key in the store", "run", id, "error", err)
		return nil
	}
	return err
}

func (s *Submitter) tryClaim(ctx context.Context, key, by, id string) error {
	at, now := storekey.Request(ScopedKey(by, key)), s.Now()
	note := []byte(id + " " + now.UTC().Format(time.RFC3339Nano))
	existed, err := s.Store.PutIfAbsent(ctx, at, note)
	if err != nil || !existed {
		return err
	}
	before, err := s.Store.Get(ctx, at)
	if err != nil {
		return err
	}
	first, since, _ := strings.Cut(string(before), " ")
	if first == id {
		return nil
	}
	_, err = s.Reader.Describe(ctx, first)
	if claimed, bad := time.Parse(time.RFC3339Nano, since); rpcerror.CodeOf(err) == connect.CodeNotFound && (bad != nil || now.Sub(claimed) > claimSettled) {
		return s.Store.Put(ctx, at, note) // the server has deleted the run, or the run never started
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
func (s *Submitter) checkSameRequest(ctx context.Context, id, key, print string) error {
	desc, err := s.Reader.Describe(ctx, id)
	if err != nil {
		return err
	}
	if runview.MemoText(desc.GetWorkflowExecutionInfo(), names.RequestMemo) != print {
		return otherRequest(key, id)
	}
	return nil
}
