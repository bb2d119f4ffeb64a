package edge

import (
	"slices"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// TestWrites knows of every procedure whether it changes something.
func TestWrites(t *testing.T) {
	// They start or follow something, and change nothing.
	reads := []string{
		switchyardv1connect.RunServiceWatchRunProcedure, switchyardv1connect.RunServiceStreamRunLogsProcedure, switchyardv1connect.RunServiceExplainTaskProcedure, switchyardv1connect.RunServicePlanRunProcedure,
	}
	services := v1.File_switchyard_v1_service_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			procedure := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
			read := slices.Contains(reads, procedure) || safe(m)
			if write := slices.Contains(writes, procedure); read == write {
				t.Errorf("%s: reads %t, writes %t", procedure, read, write)
			}
		}
	}
}

// safe says that a method is declared to have no side effects.
func safe(m protoreflect.MethodDescriptor) bool {
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}
