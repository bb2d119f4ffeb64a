package taskrunner

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// Heartbeats of a machine report the login keys that templates produced, even after a recovery, and no text that is not a
// key.
func TestHeartbeatsTellLoginKeysOfTemplates(t *testing.T) {
	t.Parallel()
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFWiEr6tTwLyaxCVnGzqMdRqQ4Nxq1lJe1Vh4rqT3mFh me"
	told := func(l *lastingNode) string {
		beats := l.server.heard()
		if len(beats) == 0 {
			return ""
		}
		return beats[len(beats)-1].GetSshPublicKey()
	}
	made := func(value string) *historyv1.ExecuteRequest {
		req := vpsRequest(map[string]any{keyField: "${{ workflow.input.key }}"})
		req.Templates, req.RunInput = true, &historyv1.Shared{Value: object(t, `{"key":"`+value+`"}`)}
		return req
	}
	first := newLastingNode(t)
	e := first.start(t.Context(), made(key))
	testneeds.Await(t, "the key is told", func() bool { return told(first) == key })
	testneeds.Await(t, "the attempt is lasting", func() bool {
		all := first.attempts.all()
		return len(all) == 1 && all[0].isLasting()
	})
	first.leaves(e)
	second := first.next()
	second.recovers()
	testneeds.Await(t, "a later worker tells the key", func() bool { return told(second) == key })
	for value, spec := range map[string]string{"hunter2": "${{ workflow.input.key }}", key: key} {
		req := made(value)
		req.Spec.Fields[keyField] = structpb.NewStringValue(spec)
		rendered, _ := structpb.NewStruct(map[string]any{keyField: value})
		if got := loginKeys(req, rendered); got != "" {
			t.Errorf("%s of %s: told %q", value, spec, got)
		}
	}
}
