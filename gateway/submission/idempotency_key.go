package submission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// keyHeader is the header in which a client may send the idempotency key of a request.
const keyHeader = "Idempotency-Key"

// maxKey is the maximum length of an idempotency key, the same as in the validation rule of the field.
const maxKey = 255

// Key returns the key in the message of a request, or else the one in its headers.
func Key(ctx context.Context, given string) (string, error) {
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

// ScopedKey scopes an idempotency key to its caller, so that no other caller can use it. It returns "" for an empty key. Callers
// without a verified name share their keys.
func ScopedKey(by, key string) string {
	if key == "" || by == "" || strings.HasSuffix(by, auth.Unverified) {
		return key
	}
	return by + "\x00" + key
}

// fingerprint returns a hash of what requests with the same idempotency key must have in common: definition, input and source. The hash
// does not depend on the order of fields or the notation of the definition.
func fingerprint(in *historyv1.RunInput, key string) (string, error) {
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
	if in.GetSource() != nil {
		fmt.Fprintln(hash, in.GetSource().GetDigest())
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
