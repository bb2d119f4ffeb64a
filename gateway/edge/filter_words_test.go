package edge

import (
	"slices"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// TestFiltersAcceptTheValuesOfTheirFields checks that a filter accepts the values of the field that it filters
// by, and "" for all.
func TestFiltersAcceptTheValuesOfTheirFields(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		filter, by  proto.Message
		name, field protoreflect.Name
	}{
		{&v1.ListRunEventsRequest{}, &v1.Event{}, "event", "event"},
		{&v1.ListRunsRequest{}, &v1.Run{}, "state", "state"},
		{&v1.ListNodesRequest{}, &v1.Node{}, "state", "state"},
		{&v1.StreamRunLogsRequest{}, &v1.LogEntry{}, "stream", "stream"},
	} {
		got, want := wordsOf(t, test.filter, test.name), append([]string{""}, wordsOf(t, test.by, test.field)...)
		if !slices.Equal(got, want) {
			t.Errorf("%s of %T takes %q, want %q", test.name, test.filter, got, want)
		}
	}
}

// wordsOf returns the values that the validation rules of a field allow.
func wordsOf(t *testing.T, m proto.Message, name protoreflect.Name) []string {
	t.Helper()
	field := m.ProtoReflect().Descriptor().Fields().ByName(name)
	rules, err := protovalidate.ResolveFieldRules(field)
	if err != nil {
		t.Fatal(err)
	}
	words := rules.GetString().GetIn()
	if len(words) == 0 {
		t.Fatalf("%s of %T may hold anything", name, m)
	}
	return words
}
