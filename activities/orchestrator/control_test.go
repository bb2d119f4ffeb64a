package orchestrator

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/metrics"
	"switchyard/activities/placement"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition"
)

func newControl(t *testing.T) *Control {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.LimitArrival(time.Millisecond)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	logger := slog.New(slog.DiscardHandler)
	return &Control{
		Store: s, Evaluator: condition.NewEvaluator(), Logger: logger,
		Placement: NewPlacement(nil, placement.New(placement.Options{Epoch: "e"}), PlacementOptions{Logger: logger}),
	}
}

// loadState returns a stored part of a state and its size in a history.
func loadState(t *testing.T, c *Control, key string) (part *historyv1.RunState, size int) {
	t.Helper()
	answer, err := c.LoadState(t.Context(), &historyv1.LoadStateRequest{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	part = &historyv1.RunState{}
	if err := definition.UnpackMessage(answer.GetPacked(), part); err != nil {
		t.Fatal(err)
	}
	return part, len(text)
}

// The parts of the state of 10,000 tasks fit into one workflow task, for which Temporal accepts 4 MB.
func TestLargeStateFitsAWorkflowTask(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	runState := &historyv1.RunState{Tasks: map[string]*historyv1.TaskState{}}
	at := func(i int) *timestamppb.Timestamp {
		return timestamppb.New(time.Unix(1, 0).Add(time.Duration(i*i) * 977 * time.Nanosecond))
	}
	for i := range 10_000 {
		runState.Tasks[fmt.Sprintf("task-%05d", i)] = &historyv1.TaskState{Claim: 1, Task: &v1.Task{
			State: "completed", Node: "node-1", Result: &v1.TaskResult{Stdout: "1\n"}, AssignedAt: at(i), StartedAt: at(i), CompletedAt: at(i),
			Attempts: []*v1.Attempt{{Claim: 1, Node: "node-1", State: "completed", AssignedAt: at(i), StartedAt: at(i), CompletedAt: at(i)}},
		}}
	}
	kept, err := c.SaveState(t.Context(), "r-1", 0, "e-1", runState)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, key := range kept.GetStored() {
		_, bytes := loadState(t, c, key)
		size += bytes
	}
	if size > 2<<20 {
		t.Errorf("%d parts take %d bytes", len(kept.GetStored()), size)
	}
}

// SaveStatus stores the final status of a run and its last events.
func TestSaveStatus(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	m, err := metrics.New("test")
	if err != nil {
		t.Fatal(err)
	}
	c.Metrics = m
	for name, bytes := range map[string]int{"small": 1000, "large": 300 << 10} {
		status := &historyv1.StatusResponse{TaskCount: 1, Run: &v1.Run{Id: name + "-1", Name: "ci", State: "failed", Error: "why", Tasks: map[string]*v1.Task{
			"t":    {State: "failed", Result: &v1.TaskResult{Stdout: strings.Repeat("x", bytes)}},
			"each": {State: "failed", Count: proto.Int32(3), Counts: map[string]int32{"completed": 2, "dead_letter": 1}}}}}
		events := &historyv1.SaveEventsRequest{RunId: name + "-1", Slice: 3, Events: []*v1.Event{{Task: "t", Event: "failed"}}}
		if _, err := c.SaveStatus(t.Context(), status, events); err != nil {
			t.Fatal(err)
		}
		var stored historyv1.StatusResponse
		if err := c.Store.GetMessage(t.Context(), storekey.Status(name+"-1", 0), &stored); err != nil || !proto.Equal(&stored, status) {
			t.Errorf("%s: the store has something else, error %v", name, err)
		}
		var part historyv1.EventSlice
		if err := c.Store.GetMessage(t.Context(), storekey.Events(name+"-1", 0, 3), &part); err != nil || len(part.GetEvents()) != 1 || part.GetEvents()[0].GetEvent() != "failed" {
			t.Errorf("%s: events %v, error %v", name, &part, err)
		}
	}
	scrape := httptest.NewRecorder()
	m.Handler().ServeHTTP(scrape, httptest.NewRequest("GET", metrics.Path, nil))
	for _, want := range []string{`switchyard_runs_total{state="failed",workflow="ci"} 2`, `switchyard_tasks_total{state="failed",type=""} 2`, `switchyard_tasks_total{state="dead_letter",type=""} 2`} {
		if !strings.Contains(scrape.Body.String(), want) {
			t.Errorf("a scrape does not say %s", want)
		}
	}
}

// A large state is stored in parts. No field is lost on its way through the store, and equal states give equal parts.
func TestStateKeepsEveryField(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	runState := &historyv1.RunState{}
	fill(runState.ProtoReflect(), 3)
	runState.Stored, runState.Packed = nil, nil // SaveState and LoadState set these
	runState.Context.Fields["large"] = structpb.NewStringValue(strings.Repeat("c", 200<<10))
	for i := range 1000 {
		runState.Tasks[fmt.Sprintf("t%d", i)] = &historyv1.TaskState{Task: &v1.Task{Error: strings.Repeat("x", 1<<10)}}
	}
	var parts [][]byte
	for round := range 3 {
		kept, err := c.SaveState(t.Context(), "r-1", 0, "e-1", runState)
		if err != nil {
			t.Fatal(err)
		}
		if len(kept.GetStored()) < 5 || proto.Size(kept) > 8<<10 || !kept.GetCancelled() || kept.GetRevision() != runState.GetRevision() || kept.GetFirstFailure() == "" {
			t.Errorf("%d bytes are kept, and %d parts", proto.Size(kept), len(kept.GetStored()))
		}
		got := proto.CloneOf(kept)
		got.Stored = nil
		for i, key := range kept.GetStored() {
			part, _ := loadState(t, c, key)
			if size := proto.Size(part); size > 300<<10 {
				t.Errorf("a part of %d bytes", size)
			}
			proto.Merge(got, part)
			value, err := c.Store.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				parts = append(parts, value)
			} else if !bytes.Equal(value, parts[i]) {
				t.Errorf("part %d is another one than before", i)
			}
		}
		if !proto.Equal(got, runState) {
			t.Error("what comes back is not what was saved")
		}
	}
}

// fill sets every field of a message, and of nested messages down to a depth.
func fill(m protoreflect.Message, depth int) {
	one := func(field protoreflect.FieldDescriptor, fresh func() protoreflect.Value) protoreflect.Value {
		switch field.Kind() {
		case protoreflect.MessageKind:
			v := fresh()
			if depth > 0 {
				fill(v.Message(), depth-1)
			}
			return v
		case protoreflect.StringKind:
			return protoreflect.ValueOfString(string(field.Name()))
		case protoreflect.BytesKind:
			return protoreflect.ValueOfBytes([]byte(field.Name()))
		case protoreflect.BoolKind:
			return protoreflect.ValueOfBool(true)
		case protoreflect.Int32Kind:
			return protoreflect.ValueOfInt32(int32(field.Number()))
		case protoreflect.Int64Kind:
			return protoreflect.ValueOfInt64(int64(field.Number()))
		case protoreflect.DoubleKind:
			return protoreflect.ValueOfFloat64(0.5)
		case protoreflect.EnumKind:
			return protoreflect.ValueOfEnum(0)
		}
		panic("a field of kind " + field.Kind().String())
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.IsMap():
			values := m.Mutable(field).Map()
			values.Set(one(field.MapKey(), nil).MapKey(), one(field.MapValue(), values.NewValue))
		case field.IsList():
			list := m.Mutable(field).List()
			list.Append(one(field, list.NewElement))
		case field.ContainingOneof() == nil || !m.Has(field) && m.WhichOneof(field.ContainingOneof()) == nil:
			m.Set(field, one(field, func() protoreflect.Value { return m.NewField(field) }))
		}
	}
}
