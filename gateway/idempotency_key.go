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

// maxKey is the longest idempotency key, as the rule of the field has it.
const maxKey = 255

// idempotencyKey returns the key of a request: the one in its message, or else the one in its headers.
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

// ownKey returns the key that an idempotency key of a caller stands for, which no other caller has, or "" for none. Callers whose names
// nothing proves have their keys in common.
func ownKey(by, key string) string {
	if key == "" || by == "" || strings.HasSuffix(by, auth.Unverified) {
		return key
	}
	return by + "\x00" + key
}

// fingerprint is a hash of what must be the same in requests of one idempotency key: definition and input. It
// does not depend on the order of fields or on how the definition was written down.
func fingerprint(in *v1.RunInput, key string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %s\n", len(key), key)
	for _, m := range []proto.Message{in.GetDefinition(), in.GetInput()} {
		text, err := protojson.Marshal(m)
		if err != nil {
			return "", fmt.Errorf("hash the request: %w", err)
		}
		// What protojson writes is not stable; with its keys sorted it is.
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

// claimSettled is after which time a run that is not there will not be started any more
// by the request that has claimed its key.
const claimSettled = time.Minute

// claimTimeout bounds how long a submit waits for the store.
const claimTimeout = 10 * time.Second

// claim notes that an idempotency key stands for a run of the id; AlreadyExists when it
// stands for a run of another workflow. While the store is away that is not known, and the run is started: its id
// keeps the same request from starting two.
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
		return g.store.Put(ctx, at, note) // the server has forgotten the run, or it never began
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

// sameRequest reports whether the run that is there under an idempotency key was started by the same request:
// AlreadyExists if not.
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
