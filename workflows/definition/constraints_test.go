package definition

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// A machine goes to a node that has its backend.
func TestMachinesNeedTheirBackend(t *testing.T) {
	task := func(backend string, constraints *v1.Constraints) *v1.TaskDefinition {
		fields := map[string]*structpb.Value{}
		if backend != "" {
			fields["backend"] = structpb.NewStringValue(backend)
		}
		return &v1.TaskDefinition{Type: v1.TypeVPS, Spec: &structpb.Struct{Fields: fields}, Constraints: constraints}
	}
	said := &v1.Constraints{RequiresExecutors: []string{"shell"}, RequiresCapabilities: map[string]string{"kvm": "true"}}
	for name, test := range map[string]struct {
		task         *v1.TaskDefinition
		executors    int
		capabilities map[string]string
	}{
		"container":            {task("", nil), 1, nil},
		"named container":      {task("docker", said), 2, said.GetRequiresCapabilities()},
		"virtual machine":      {task("qemu", nil), 0, map[string]string{"qemu": "true"}},
		"virtual machine, KVM": {task("qemu", said), 1, map[string]string{"qemu": "true", "kvm": "true"}},
	} {
		got := Constraints(test.task)
		if len(got.GetRequiresExecutors()) != test.executors || len(got.GetRequiresCapabilities()) != len(test.capabilities) {
			t.Errorf("%s: %v", name, got)
		}
		for key, value := range test.capabilities {
			if got.GetRequiresCapabilities()[key] != value {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	if len(said.GetRequiresExecutors()) != 1 || len(said.GetRequiresCapabilities()) != 1 {
		t.Errorf("what the task says was changed: %v", said)
	}
}
