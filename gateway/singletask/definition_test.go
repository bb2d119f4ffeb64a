package singletask

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// TestTaskRequestHasTheFieldsOfTasks checks that the request for a single task has the same fields as tasks in workflows.
func TestTaskRequestHasTheFieldsOfTasks(t *testing.T) {
	t.Parallel()
	onlyInDefinitions := []protoreflect.Name{"depends_on", "condition", "on_failure", "continue_on_error", "when", "batch", "workspace", "gang"}
	request := (&v1.SubmitTaskRequest{}).ProtoReflect().Descriptor().Fields()
	task := (&v1.TaskDefinition{}).ProtoReflect().Descriptor().Fields()
	for i := range task.Len() {
		field := task.Get(i)
		same := request.ByName(field.Name())
		switch {
		case slices.Contains(onlyInDefinitions, field.Name()):
			if same != nil && !slices.Contains(fieldsOfRun, field.Name()) {
				t.Errorf("the request has %s, which is for tasks of definitions", field.Name())
			}
		case same == nil:
			t.Errorf("the request lacks %s", field.Name())
		case same.Kind() != field.Kind() || same.Cardinality() != field.Cardinality() || same.Message() != field.Message() && !field.IsMap():
			t.Errorf("%s has another type in the request", field.Name())
		}
	}
	for i := range request.Len() {
		if name := request.Get(i).Name(); task.ByName(name) == nil && !slices.Contains(fieldsOfRun, name) {
			t.Errorf("the request has %s, which no task has", name)
		}
	}
}
