package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

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

// sameRequest says whether the run that is there under an idempotency key was started by the same request:
// AlreadyExists if not.
func (g *Gateway) sameRequest(ctx context.Context, id, key, print string) error {
	desc, err := g.reader.describe(ctx, id)
	if err != nil {
		return err
	}
	if memoText(desc.GetWorkflowExecutionInfo(), names.RequestMemo) != print {
		return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf(
			"the idempotency key %q has started run %s with another definition or input; use another key, or submit the same", key, id))
	}
	return nil
}
