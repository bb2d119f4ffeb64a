package submission

import (
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/structs"
)

const (
	// maxInputBytes bounds the input of a run, as JSON. The input is part of the status that a run reports.
	maxInputBytes = 1 << 20
	// minHeartbeatTimeout is the shortest heartbeat time-out of attempts. A shorter one would leave attempts no time
	// to send a heartbeat, or to end themselves when they cannot.
	minHeartbeatTimeout = time.Second
)

func checkOptions(o *v1.RunOptions) error {
	if d := o.GetHeartbeatTimeout().AsDuration(); d != 0 && d < minHeartbeatTimeout {
		return rpcerror.Invalid("the heartbeat time-out is %s; it must be at least %s", d, minHeartbeatTimeout)
	}
	if d := o.GetMaxLease(); d != nil && d.AsDuration() < minHeartbeatTimeout {
		return rpcerror.Invalid("the longest lease is %s; it must be at least %s", d.AsDuration(), minHeartbeatTimeout)
	}
	if d := o.GetPickupTimeout(); d != nil && d.AsDuration() < definition.MinPickupTimeout {
		return rpcerror.Invalid("the pick-up time-out is %s; it must be at least %s", d.AsDuration(), definition.MinPickupTimeout)
	}
	if d := o.GetPlacementTimeout().AsDuration(); d < 0 {
		return rpcerror.Invalid("the placement time-out is %s; it must not be negative", d)
	}
	return nil
}

func checkInput(input *structpb.Struct) error {
	text, err := protojson.Marshal(input)
	if err != nil {
		return rpcerror.Invalid("the input is not valid JSON: %v", err)
	}
	if err := structs.CheckJSON(text); err != nil {
		return rpcerror.Invalid("the input: %v", err)
	}
	if len(text) > maxInputBytes {
		return rpcerror.Invalid("the input has %d bytes; the maximum is %d; put large data where the tasks can fetch it", len(text), maxInputBytes)
	}
	return nil
}
