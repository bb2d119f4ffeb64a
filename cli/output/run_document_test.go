package output

import (
	"bytes"
	"fmt"
	"maps"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
)

// TestRunDocumentIsTheRun checks that the document equals the run, however the run is split into pages and whatever its
// strings contain.
func TestRunDocumentIsTheRun(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "plain", "\"tasks\":{", "{\"tasks\": {}}", "a\nb\x00", "<&>", "日本"})
	rapid.Check(t, func(t *rapid.T) {
		context, err := structpb.NewStruct(map[string]any{"tasks": map[string]any{text.Draw(t, "key"): text.Draw(t, "value")}})
		if err != nil {
			t.Fatal(err)
		}
		want := &v1.Run{
			Id: "r-1", Name: text.Draw(t, "name"), State: "failed", Error: text.Draw(t, "error"), CreatedAt: timestamppb.New(time.Unix(0, 0)),
			Context: context, Input: &structpb.Struct{}, Tasks: map[string]*v1.Task{},
		}
		var out bytes.Buffer
		rw := &RunWriter{Out: &out, OneLine: rapid.Bool().Draw(t, "line")}
		for page := range rapid.IntRange(1, 3).Draw(t, "pages") {
			part := proto.CloneOf(want)
			part.Tasks = map[string]*v1.Task{}
			for i := range rapid.IntRange(0, 3).Draw(t, "tasks") {
				part.Tasks[fmt.Sprintf("t%d-%d", page, i)] = &v1.Task{State: "failed", Attempt: int32(i), Error: text.Draw(t, "task error")}
			}
			if err := rw.WritePage(part); err != nil {
				t.Fatal(err)
			}
			maps.Copy(want.Tasks, part.Tasks)
		}
		if err := rw.End(); err != nil {
			t.Fatal(err)
		}
		got := &v1.Run{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: rw.OneLine}).Unmarshal(out.Bytes(), got); err != nil {
			t.Fatalf("%v in\n%s", err, out.Bytes())
		}
		if !proto.Equal(got, want) {
			t.Fatalf("%s\nis not\n%v", out.Bytes(), want)
		}
		if lines := bytes.Count(out.Bytes(), []byte("\n")); rw.OneLine && lines != 1 {
			t.Fatalf("%d lines", lines)
		}
	})
}
