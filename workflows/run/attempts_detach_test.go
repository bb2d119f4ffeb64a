package run

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/proto/prototest"
	v1 "switchyard/proto/switchyard/v1"
)

// The next execution restores exactly the attempt that this one hands over.
func TestDetachedAttemptIsRestored(t *testing.T) {
	t.Parallel()
	left := &v1.DetachedAttempt{}
	prototest.Fill(left)
	name := func(int) string { return "t0" }
	left.Lead, left.Members = name(0), []string{name(0)}
	if again := handedOver(restoredAttempt(left, 0, []int{0}), name); !proto.Equal(left, again) {
		t.Errorf("%v\nis handed over as\n%v", left, again)
	}
}
