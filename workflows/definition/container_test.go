package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestContainerNeeds(t *testing.T) {
	tests := map[string]struct {
		task string
		want *historyv1.ContainerNeeds
	}{
		"no container": {"{ type: shell, spec: { command: make } }", nil},
		"harmless":     {"{ type: container, spec: { image: a, network: none, user: \"0\" } }", nil},
		"all": {`{ type: container, spec: { image: a, privileged: true, network: host, cap_add: [CAP_SYS_ADMIN, net_admin],
			mounts: [{ host_path: /a/../b, container_path: /b }, { hostPath: /c, containerPath: /c, readOnly: true }] } }`,
			&historyv1.ContainerNeeds{Privileged: true, HostNetwork: true, Capabilities: []string{"NET_ADMIN", "SYS_ADMIN"},
				Mounts: []*v1.MountRule{{Path: "/b"}, {Path: "/c", ReadOnly: true}}}},
		"a machine": {`{ type: vps, spec: { image: a, privileged: true, network: host, capAdd: [net_admin], mounts: [{ hostPath: /c, containerPath: /c, readOnly: true }] } }`,
			&historyv1.ContainerNeeds{Privileged: true, HostNetwork: true, Capabilities: []string{"NET_ADMIN"}, Mounts: []*v1.MountRule{{Path: "/c", ReadOnly: true}}}},
		"a harmless machine": {"{ type: vps, spec: { image: a } }", nil},
		"templates": {`{ type: container, spec: { image: a, network: "${{ workflow.context.n }}", capAdd: ["${{ workflow.context.c }}"],
			mounts: [{ hostPath: "/x/${{ workflow.context.d }}", containerPath: /x }, { hostPath: /y, containerPath: /y }] } }`,
			&historyv1.ContainerNeeds{Mounts: []*v1.MountRule{{Path: "/y"}}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			def, err := Parse("needs.yaml", []byte("name: needs\ncontext: { n: host, c: ALL, d: z }\ntasks:\n  t: "+tt.task+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, ContainerNeeds(def.GetTasks()["t"]), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
