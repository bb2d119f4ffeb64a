package switchyardv1

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/proto/prototest"
)

// onlyOfInstances lists the fields of an instance that a task has not: its place in the fan-out and in its batch, and its item.
var onlyOfInstances = []protoreflect.Name{"index", "lead", "item"}

// onlyOfTasks lists the fields of a task that an instance has not: they describe a fan-out, name the task in a list, or follow from
// a setting that is for all instances together.
var onlyOfTasks = []string{"count", "counts", "instances", "name", "late_since"}

// ofTheTask lists the fields that an instance shares with the task that fanned out.
var ofTheTask = []protoreflect.Name{"type", "depends_on"}

func TestInstanceTaskHasEveryFieldOfTheInstance(t *testing.T) {
	t.Parallel()
	of, instance := &Task{}, &Instance{}
	prototest.Fill(of)
	prototest.Fill(instance)
	got := InstanceTask(of, instance)
	if missing := prototest.Missing(got, onlyOfTasks...); len(missing) > 0 {
		t.Errorf("the task has no %v", missing)
	}
	fields := instance.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		in := got.ProtoReflect().Descriptor().Fields().ByName(field.Name())
		switch {
		case slices.Contains(onlyOfInstances, field.Name()):
			if in != nil {
				t.Errorf("tasks have the field %s, too", field.Name())
			}
		case in == nil:
			t.Errorf("the field %s of instances is neither a field of tasks nor listed here", field.Name())
		case !got.ProtoReflect().Get(in).Equal(instance.ProtoReflect().Get(field)):
			t.Errorf("%s is %v, want that of the instance", field.Name(), got.ProtoReflect().Get(in))
		}
	}
	for _, name := range ofTheTask {
		field := got.ProtoReflect().Descriptor().Fields().ByName(name)
		if !got.ProtoReflect().Get(field).Equal(of.ProtoReflect().Get(field)) {
			t.Errorf("%s is %v, want that of the task", name, got.ProtoReflect().Get(field))
		}
	}
	if proto.Size(InstanceTask(nil, nil)) != 0 {
		t.Error("the task of no instance has fields")
	}
}
