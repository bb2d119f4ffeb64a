package definition

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// ContainerNeeds returns what the container or the machine of a task requires its node to allow, or nil if nothing. Values from
// templates are not known yet and are left out. The definition must be in canonical form.
func ContainerNeeds(task *v1.TaskDefinition) *historyv1.ContainerNeeds {
	if task.GetType() != v1.TypeContainer && task.GetType() != v1.TypeVPS {
		return nil
	}
	fields := task.GetSpec().GetFields()
	spec := &v1.ContainerSpec{Privileged: fields["privileged"].GetBoolValue()}
	spec.Network = knownText(fields["network"])
	for _, m := range fields["mounts"].GetListValue().GetValues() {
		mount := m.GetStructValue().GetFields()
		if host := knownText(mount["hostPath"]); host != "" {
			spec.Mounts = append(spec.Mounts, &v1.Mount{HostPath: host, ReadOnly: mount["readOnly"].GetBoolValue()})
		}
	}
	for _, name := range fields["capAdd"].GetListValue().GetValues() {
		if name := knownText(name); name != "" {
			spec.CapAdd = append(spec.CapAdd, name)
		}
	}
	return policy.Needs(spec)
}
