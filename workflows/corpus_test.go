package workflows_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/reflect/protoreflect"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// readByNoRun lists the fields of definitions that are resolved before a run starts, or that decide when it starts or who may
// start it. The files of a source are in RunInput.source.
var readByNoRun = []string{
	"switchyard.v1.Definition.a2a", "switchyard.v1.Definition.defaults", "switchyard.v1.Definition.schedule", "switchyard.v1.TaskDefinition.matrix",
	"switchyard.v1.Definition.source", "switchyard.v1.SourceDefinition.dir",
}

// TestHistoriesCoverTheLanguage checks that each field of a definition, and each message that a workflow receives, occurs in a
// recorded history, so that TestReplay covers all of them.
func TestHistoriesCoverTheLanguage(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/histories/*.json")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		for _, event := range readHistory(t, file).GetEvents() {
			if a := event.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
				seen[a.GetSignalName()] = true
			}
			if a := event.GetWorkflowExecutionUpdateAcceptedEventAttributes(); a != nil {
				seen[a.GetAcceptedRequest().GetInput().GetName()] = true
			}
			a := event.GetWorkflowExecutionStartedEventAttributes()
			if a.GetWorkflowType().GetName() != names.RunWorkflow {
				continue
			}
			var in historyv1.RunInput
			if err := converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &in); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			addFieldsSet(in.GetDefinition().ProtoReflect(), seen)
		}
	}
	wanted := map[string]bool{}
	addFields((&v1.Definition{}).ProtoReflect().Descriptor(), wanted)
	for _, field := range readByNoRun {
		delete(wanted, field)
	}
	for _, name := range []string{
		names.CancelSignal, names.GrantedSignal, names.PartitionReportSignal, names.OrderSignal, names.AskSignal,
		names.RetryUpdate, names.PauseUpdate, names.ResumeUpdate, names.HoldUpdate, names.ReleaseUpdate,
		names.CancelTaskUpdate, names.PauseTaskUpdate, names.ResumeTaskUpdate, names.KillTaskUpdate, names.StopTaskUpdate, names.RestartTaskUpdate, names.ApproveUpdate, names.RejectUpdate,
		names.RegisterUpdate, names.LeaveUpdate, names.DrainUpdate, names.UndrainUpdate, names.TermsUpdate, names.RemoveUpdate,
	} {
		wanted[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !seen[name] {
			t.Errorf("no history has %s: replay one that has (workflows/run/language_test.go), and run dev/record-histories.sh", name)
		}
	}
}

func readHistory(t *testing.T, file string) *historypb.History {
	t.Helper()
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	history, err := client.HistoryFromJSON(text, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return history
}

// addFieldsSet adds the full names of all fields that are set in a message and in its nested messages.
func addFieldsSet(m protoreflect.Message, to map[string]bool) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to[string(field.FullName())] = true
		switch {
		case field.IsMap():
			if field.MapValue().Message() != nil {
				value.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
					addFieldsSet(value.Message(), to)
					return true
				})
			}
		case field.IsList():
			if field.Message() != nil {
				for i := range value.List().Len() {
					addFieldsSet(value.List().Get(i).Message(), to)
				}
			}
		case field.Message() != nil:
			addFieldsSet(value.Message(), to)
		}
		return true
	})
}

// addFields adds the full names of all fields of a message of this module and of its nested messages. It leaves out messages
// that are held only by fields that no run reads.
func addFields(message protoreflect.MessageDescriptor, to map[string]bool) {
	if !strings.HasPrefix(string(message.FullName()), "switchyard.") {
		return
	}
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		name := string(field.FullName())
		if to[name] {
			continue
		}
		to[name] = true
		if field.IsMap() {
			field = field.MapValue()
		}
		if field.Message() != nil && !slices.Contains(readByNoRun, name) {
			addFields(field.Message(), to)
		}
	}
}
