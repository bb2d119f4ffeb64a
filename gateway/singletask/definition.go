package singletask

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// nameless is the name of a task that has neither a name nor a known type.
const nameless = "task"

// Definition returns the definition of a run of the task of a request. It is not checked.
func Definition(req *v1.SubmitTaskRequest) *v1.Definition {
	name := Name(req)
	return &v1.Definition{Name: name, Tasks: map[string]*v1.TaskDefinition{name: taskOf(req)}}
}

// Name returns the name of a task in its run.
func Name(req *v1.SubmitTaskRequest) string {
	switch {
	case req.GetName() != "":
		return req.GetName()
	case slices.Contains(v1.TaskTypes(), req.GetType()):
		return req.GetType()
	}
	return nameless
}

// taskOf returns the task of a request: the fields that have the same names in both.
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

// fieldsOfRun are the fields of a SubmitTaskRequest that are about its run. The `batch` of a TaskDefinition, which is about
// instances, is another one.
var fieldsOfRun = []protoreflect.Name{"name", "options", "idempotency_key", "batch"}
