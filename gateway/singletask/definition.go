package singletask

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// nameless is the default name of a task with neither a name nor a known type.
const nameless = "task"

// Definition returns the definition of a run with the requested task as its only task. The definition is not validated.
func Definition(req *v1.SubmitTaskRequest) *v1.Definition {
	name := Name(req)
	return &v1.Definition{Name: name, Tasks: map[string]*v1.TaskDefinition{name: taskOf(req)}}
}

// Name returns the name that the task has in its run.
func Name(req *v1.SubmitTaskRequest) string {
	switch {
	case req.GetName() != "":
		return req.GetName()
	case slices.Contains(v1.TaskTypes(), req.GetType()):
		return req.GetType()
	}
	return nameless
}

// taskOf copies the fields that a request and a task definition have in common.
func taskOf(req *v1.SubmitTaskRequest) *v1.TaskDefinition {
	task := &v1.TaskDefinition{}
	fields := task.ProtoReflect().Descriptor().Fields()
	proto.CloneOf(req).ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if same := fields.ByName(field.Name()); same != nil && !slices.Contains(fieldsOfRun, field.Name()) {
			task.ProtoReflect().Set(same, value)
		}
		return true
	})
	return task
}

// fieldsOfRun are the fields of a SubmitTaskRequest that concern its run. The `batch` field of a TaskDefinition, which
// concerns instances, is unrelated.
var fieldsOfRun = []protoreflect.Name{"name", "options", "idempotency_key", "batch"}
