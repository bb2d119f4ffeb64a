package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestTaskNeeds checks that placement learns everything that a node may not offer.
func TestTaskNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		task string
		want *historyv1.TaskNeeds
	}{
		"nothing":                   {"{ type: shell, spec: { command: make } }", nil},
		"shell":                     {"{ type: shell, spec: { command: make, shell: bash } }", &historyv1.TaskNeeds{Interpreters: []string{"bash"}}},
		"#! line":                   {"{ type: shell, spec: { command: \"#!/usr/bin/env python3\\nx\" } }", &historyv1.TaskNeeds{Interpreters: []string{"python3"}}},
		"#! line in an image":       {"{ type: container, spec: { image: a, command: \"#!/usr/bin/env python3\\nx\" } }", nil},
		"interpreter elsewhere":     {"{ type: shell, spec: { command: \"#!/opt/x/python3\\nx\" } }", nil},
		"interpreter of the task":   {"{ type: shell, spec: { command: make, shell: bash }, env: { PATH: /opt/bin } }", nil},
		"interpreter from template": {"{ type: shell, spec: { command: x, shell: [\"${{ workflow.context.n }}\"] } }", nil},
		"image of the node":         {"{ type: vps, spec: { backend: qemu, vmImage: /images/a.qcow2 } }", &historyv1.TaskNeeds{VmImage: "/images/a.qcow2"}},
		"image of a bucket":         {"{ type: vps, spec: { backend: qemu, vmImage: \"s3://b/a.qcow2\" } }", nil},
		"registry and network":      {"{ type: container, spec: { image: a, registryAuth: hub, network: lab } }", &historyv1.TaskNeeds{RegistryAuth: "hub", Network: "lab"}},
		"network of a machine":      {"{ type: vps, spec: { image: a, network: lab } }", &historyv1.TaskNeeds{Network: "lab"}},
		"network of every engine":   {"{ type: container, spec: { image: a, network: bridge } }", nil},
		"network of the host":       {"{ type: container, spec: { image: a, network: host } }", nil},
		"network from a template":   {"{ type: container, spec: { image: a, network: \"${{ workflow.context.n }}\" } }", nil},
		"secrets":                   {"{ type: shell, spec: { command: make }, secretEnv: { B: \"env:X\", A: \"file:/k\", C: \"env:X\", D: \"store:s\" } }", &historyv1.TaskNeeds{Secrets: []string{"env:X", "file:/k"}}},
		"agent":                     {"{ type: subagent, spec: { prompt: x } }", &historyv1.TaskNeeds{AgentKey: "anthropic"}},
		"agent with tools":          {"{ type: subagent, spec: { prompt: x, provider: openai, model: m, tools: [files, fetch], fetchHosts: [a.example], mcpServers: { s: { url: \"https://a.example\" } } } }", &historyv1.TaskNeeds{AgentKey: "openai", AgentTools: []string{"files", "fetch", "mcp"}}},
		"agent with a key":          {"{ type: subagent, spec: { prompt: x }, secretEnv: { ANTHROPIC_API_KEY: \"store:k\" } }", nil},
		"agent of a server":         {"{ type: subagent, spec: { prompt: x, provider: openai, model: m, baseUrl: \"http://127.0.0.1:1/v1\" } }", nil},
		"program":                   {"{ type: subagent, spec: { prompt: x, agent: claude-code } }", &historyv1.TaskNeeds{AgentProgram: "claude-code"}},
		"program in another PATH":   {"{ type: subagent, spec: { prompt: x, agent: claude-code }, env: { PATH: /opt/bin } }", nil},
		"program that a task names": {"{ type: subagent, spec: { prompt: x, command: [/opt/agent] } }", nil},
	} {
		def := parse(t, "needs.yaml", "name: needs\ncontext: { n: lab }\ntasks:\n  t: "+test.task+"\n")
		if diff := cmp.Diff(test.want, TaskNeeds(def.GetTasks()["t"]), protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

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
	for name, test := range tests {
		def := parse(t, "needs.yaml", "name: needs\ncontext: { n: host, c: ALL, d: z }\ntasks:\n  t: "+test.task+"\n")
		if diff := cmp.Diff(test.want, ContainerNeeds(def.GetTasks()["t"]), protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
