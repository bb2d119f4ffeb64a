package definition

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// large returns the input of a run with a number of tasks, each with an environment of some bytes.
func large(tasks, bytes int) *historyv1.RunInput {
	def := &v1.Definition{Name: "large", Tasks: map[string]*v1.TaskDefinition{}}
	for i := range tasks {
		def.Tasks[fmt.Sprintf("t%d", i)] = &v1.TaskDefinition{Type: "shell", Env: map[string]string{"A": strings.Repeat("\x01", bytes)}}
	}
	input, _ := structpb.NewStruct(map[string]any{"n": 1})
	return &historyv1.RunInput{
		Definition: def, Input: input, Generation: 2, Rerun: &historyv1.Rerun{Failed: true},
		References: map[string]*historyv1.ConditionReferences{"t1": {Tasks: []string{"t0"}}},
	}
}

func TestPack(t *testing.T) {
	in := large(5000, 1000) // 5 MB, 30 MB as JSON
	want := proto.CloneOf(in)
	if err := Pack(in); err != nil {
		t.Fatal(err)
	}
	if in.GetDefinition() != nil || in.GetInput() != nil || in.GetReferences() != nil || in.GetGeneration() != 2 {
		t.Errorf("packed it is %v", in)
	}
	text, err := protojson.Marshal(in)
	if err != nil || len(text) > 1<<20 {
		t.Errorf("packed it takes %d bytes, %v", len(text), err)
	}
	packed := proto.CloneOf(in)
	if err := Pack(in); err != nil || !proto.Equal(in, packed) {
		t.Errorf("packed twice: %v", err)
	}
	got, err := Unpack(in)
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("unpacked it differs: %v", err)
	}
	if !proto.Equal(in, packed) {
		t.Error("Unpack has changed its argument")
	}
}

func TestPackLeavesSmallDefinitionsReadable(t *testing.T) {
	in := large(3, 10)
	want := proto.CloneOf(in)
	if err := Pack(in); err != nil || !proto.Equal(in, want) {
		t.Errorf("%v, %v", in, err)
	}
	if got, err := Unpack(in); err != nil || got != in {
		t.Errorf("%v, %v", got, err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	bomb := &historyv1.RunInput{Definition: &v1.Definition{Description: strings.Repeat("x", maxUnpacked+1)}}
	if err := Pack(bomb); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]*historyv1.RunInput{
		"no gzip":   {Packed: []byte("not compressed")},
		"cut":       {Packed: bomb.GetPacked()[:100]},
		"too large": bomb,
	} {
		if _, err := Unpack(in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
