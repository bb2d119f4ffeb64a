package historyv1

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// TestCheckKnown gives one message at a time, at any depth, a field that no program knows.
func TestCheckKnown(t *testing.T) {
	t.Parallel()
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 9999, protowire.VarintType), 1)
	task := &v1.TaskDefinition{Type: "shell", Retry: &v1.RetryPolicy{}}
	whole := &RunInput{
		Definition: &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": task}},
		State:      &RunState{}, HeldLocks: []*HeldLock{{}, {}},
	}
	if err := CheckKnown("it", whole); err != nil {
		t.Error(err)
	}
	for name, m := range map[string]proto.Message{
		"itself": whole, "in a map": task, "below a map": task.GetRetry(), "in a list": whole.GetHeldLocks()[1], "in a field": whole.GetState(),
	} {
		m.ProtoReflect().SetUnknown(unknown)
		newer, ok := errors.AsType[*NewerDataError](CheckKnown("it", whole))
		if !ok || newer.Error() != "it was written by a newer Switchyard, and has parts that this one does not know; upgrade this program" {
			t.Errorf("%s: %v", name, newer)
		}
		m.ProtoReflect().SetUnknown(nil)
	}
}

func TestDataLevels(t *testing.T) {
	t.Parallel()
	if r, w := ReadableDataLevel(), WrittenDataLevel(); w < 1 || r < w || r > w+1 {
		t.Errorf("this program understands %d and writes %d", r, w)
	}
}
