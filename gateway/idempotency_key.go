package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// keyHeader is the header in which a client may send the idempotency key of a request.
const keyHeader = "Idempotency-Key"

// maxKey is the maximum length of an idempotency key, the same as in the validation rule of the field.
const maxKey = 255

// idempotencyKey returns the key in the message of a request, or else the one in its headers.
func idempotencyKey(ctx context.Context, given string) (string, error) {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return given, nil
	}
	sent := call.RequestHeader().Values(keyHeader)
	switch {
	case len(sent) == 0:
		return given, nil
	case len(sent) > 1:
		return "", rpcerror.Invalid("the header %s is sent %d times; send it once", keyHeader, len(sent))
	case given != "" && given != sent[0]:
		return "", rpcerror.Invalid("the header %s and the field idempotency_key differ; send one of them", keyHeader)
	case sent[0] == "" || len(sent[0]) > maxKey || strings.ContainsFunc(sent[0], unicode.IsControl):
		return "", rpcerror.Invalid("the header %s must have 1 to %d characters, none of them a control character", keyHeader, maxKey)
	}
	return sent[0], nil
}

// ownKey scopes an idempotency key to its caller, so that no other caller can use it. It returns "" for an empty key. Callers
// without a verified name share their keys.
func ownKey(by, key string) string {
	if key == "" || by == "" || strings.HasSuffix(by, auth.Unverified) {
		return key
	}
	return by + "\x00" + key
}

// fingerprint returns a hash of what requests with the same idempotency key must have in common: definition and input. The hash
// does not depend on the order of fields or the notation of the definition.
func fingerprint(in *v1.RunInput, key string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %s\n", len(key), key)
	for _, m := range []proto.Message{in.GetDefinition(), in.GetInput()} {
		text, err := protojson.Marshal(m)
		if err != nil {
			return "", fmt.Errorf("hash the request: %w", err)
		}
		// The output of protojson is not stable; sorting its keys makes it so.
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return "", fmt.Errorf("hash the request: %w", err)
		}
		if err := json.NewEncoder(hash).Encode(value); err != nil {
			return "", fmt.Errorf("hash the request: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// claimSettled is the time after which a request that has claimed its key will no longer start a run that is still missing.
const claimSettled = time.Minute

// claimTimeout bounds how long a submit waits for the store.
const claimTimeout = 10 * time.Second

// claim records that an idempotency key stands for the run with the given id. It returns AlreadyExists if the key stands for a
// run of another workflow. While the store is down this cannot be checked and the run is started regardless; its id keeps the
// same request from starting two runs.
func (g *Gateway) claim(ctx context.Context, key, by, id string) error {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	err := g.tryClaim(ctx, key, by, id)
	if err != nil && rpcerror.CodeOf(err) != connect.CodeAlreadyExists {
		g.log.Warn("an idempotency key could not be claimed in the store", "run", id, "error", err)
		return nil
	}
	return err
}

func (g *Gateway) tryClaim(ctx context.Context, key, by, id string) error {
	at, now := storekey.Request(ownKey(by, key)), g.config.Now()
	note := []byte(id + " " + now.UTC().Format(time.RFC3339Nano))
	existed, err := g.store.PutIfAbsent(ctx, at, note)
	if err != nil || !existed {
		return err
	}
	before, err := g.store.Get(ctx, at)
	if err != nil {
		return err
	}
	first, since, _ := strings.Cut(string(before), " ")
	if first == id {
		return nil
	}
	_, err = g.reader.Describe(ctx, first)
	if claimed, bad := time.Parse(time.RFC3339Nano, since); rpcerror.CodeOf(err) == connect.CodeNotFound && (bad != nil || now.Sub(claimed) > claimSettled) {
		return g.store.Put(ctx, at, note) // the server has deleted the run, or the run never started
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

// sameRequest returns AlreadyExists unless the run under an idempotency key was started by the same request.
func (g *Gateway) sameRequest(ctx context.Context, id, key, print string) error {
	desc, err := g.reader.Describe(ctx, id)
	if err != nil {
		return err
	}
	if runview.MemoText(desc.GetWorkflowExecutionInfo(), names.RequestMemo) != print {
		return otherRequest(key, id)
	}
	return nil
}
