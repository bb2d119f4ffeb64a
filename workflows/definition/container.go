package definition

import (
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/policy"
)

// ContainerNeeds returns what the container or the machine of a task requires its node to allow, or nil if nothing. Values from
// templates are not known yet and are left out. The definition must be in canonical form.
func ContainerNeeds(task *v1.TaskDefinition) *v1.ContainerNeeds {
	if task.GetType() != v1.TypeContainer && task.GetType() != v1.TypeVPS {
		return nil
	}
	fields := task.GetSpec().GetFields()
	known := func(v *structpb.Value) (string, bool) {
		text := v.GetStringValue()
		return text, text != "" && !condition.HasTemplate(text)
	}
	spec := &v1.ContainerSpec{Privileged: fields["privileged"].GetBoolValue()}
	spec.Network, _ = known(fields["network"])
	for _, m := range fields["mounts"].GetListValue().GetValues() {
		mount := m.GetStructValue().GetFields()
		if host, ok := known(mount["hostPath"]); ok {
			spec.Mounts = append(spec.Mounts, &v1.Mount{HostPath: host, ReadOnly: mount["readOnly"].GetBoolValue()})
		}
	}
	for _, name := range fields["capAdd"].GetListValue().GetValues() {
		if name, ok := known(name); ok {
			spec.CapAdd = append(spec.CapAdd, name)
		}
	}
	return policy.Needs(spec)
}
