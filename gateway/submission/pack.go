package submission

import (
	"fmt"

	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/definition"
)

// maxPayloadBytes bounds the encoded input of a workflow. Temporal's own limit is 2 MB, which also has to hold the
// rest of the request and what later executions carry.
const maxPayloadBytes = 1_600_000

// Pack returns in as it is sent to Temporal, with its definition compressed. The error is InvalidArgument if it is
// still too large.
func Pack(in *historyv1.RunInput) (*historyv1.RunInput, error) {
	in = proto.CloneOf(in)
	in.State, in.ParentFirst, in.HeldLocks = nil, "", nil // a new run carries nothing, and no parent awaits it
	if in.Source != nil {
		in.Source.Manifest = ""
	}
	if err := definition.Pack(in); err != nil {
		return nil, fmt.Errorf("pack the definition: %w", err)
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(in)
	if err != nil {
		return nil, fmt.Errorf("encode the input of a run: %w", err)
	}
	if size := proto.Size(payload); size > maxPayloadBytes {
		return nil, rpcerror.Invalid("definition and input have %d bytes compressed; the maximum is %d", size, maxPayloadBytes)
	}
	return in, nil
}
