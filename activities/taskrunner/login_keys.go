package taskrunner

import (
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/sshkey"
)

const (
	// keyField is the spec field with the keys that may log in.
	keyField = "sshPublicKey"
	// maxLoginKeys bounds the keys that each heartbeat of an attempt repeats, in bytes.
	maxLoginKeys = 16 << 10
)

// loginKeys returns the public keys that may log in to a machine, one per line. It returns "" if they do not come from
// templates of the requested spec: the heartbeats need not repeat those. It also returns "" if the text is not a key,
// because it may be a secret.
func loginKeys(req *historyv1.ExecuteRequest, spec *structpb.Struct) string {
	text := spec.GetFields()[keyField].GetStringValue()
	if req.GetType() != v1.TypeVPS || text == req.GetSpec().GetFields()[keyField].GetStringValue() || len(text) > maxLoginKeys {
		return ""
	}
	if _, fault := sshkey.Parse(text); fault != nil {
		return ""
	}
	return text
}
