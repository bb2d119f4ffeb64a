package definition

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	v1 "switchyard/proto/switchyard/v1"
)

// TestConstraintsHaveWhatASpecNeeds checks what the spec of a task adds to its constraints. Their own values take precedence.
func TestConstraintsHaveWhatASpecNeeds(t *testing.T) {
	const said = "constraints: { nodeLabels: [server], requiresExecutors: [shell], requiresCapabilities: { kvm: nvidia } }"
	own := &v1.Constraints{NodeLabels: []string{"server"}, RequiresExecutors: []string{"shell"}, RequiresCapabilities: map[string]string{"kvm": "nvidia"}}
	with := func(executors []string, capability string) *v1.Constraints {
		c := proto.CloneOf(own)
		c.RequiresExecutors = append(c.RequiresExecutors, executors...)
		if capability != "" {
			c.RequiresCapabilities[capability] = "true"
		}
		return c
	}
	capability := func(name string) *v1.Constraints {
		return &v1.Constraints{RequiresCapabilities: map[string]string{name: "true"}}
	}
	engine := &v1.Constraints{RequiresExecutors: []string{"container"}}
	for task, want := range map[string]*v1.Constraints{
		"type: shell, spec: { command: x }":                                  nil,
		"type: shell, spec: { command: x, sandbox: false }":                  nil,
		"type: shell, spec: { command: x, sandbox: true }":                   capability("sandbox"),
		"type: shell, spec: { command: x, sandbox: true }, " + said:          with(nil, "sandbox"),
		"type: vps, spec: { image: x }":                                      engine,
		"type: vps, spec: { image: x, backend: docker }, " + said:            with([]string{"container"}, ""),
		"type: vps, spec: { vmImage: /x, backend: qemu }":                    capability("qemu"),
		"type: vps, spec: { vmImage: /x, backend: qemu }, " + said:           with(nil, "qemu"),
		"type: subagent, spec: { prompt: x, tools: [shell] }":                capability("sandbox"),
		"type: subagent, spec: { prompt: x, tools: [shell], image: x }":      engine,
		"type: subagent, spec: { prompt: x, tools: [files] }":                nil,
		"type: claude_relay, spec: { prompt: x, targetSessionId: one }":      capability(v1.SessionCapability("one")),
		"type: k8s_job, spec: { image: x, cluster: one }":                    capability(v1.ClusterCapability("one")),
		"type: shell, spec: { command: ls $SWITCHYARD_SHARED_DIR }, " + said: with(nil, v1.SharedDirCapability),
		"type: shell, spec: { command: x, sandbox: true }, constraints: { requiresCapabilities: { sandbox: strict } }": {
			RequiresCapabilities: map[string]string{"sandbox": "strict"}},
	} {
		def := parse(t, "a.yaml", "name: a\ntasks: { a: { "+task+" } }")
		before := proto.CloneOf(def)
		if diff := cmp.Diff(want, Constraints(def.GetTasks()["a"]), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", task, diff)
		}
		if !proto.Equal(def, before) {
			t.Errorf("%s: the definition was changed", task)
		}
	}
}

// A task that names the shared folder goes to a node that has one.
func TestTaskThatNamesTheSharedFolderNeedsIt(t *testing.T) {
	for task, needs := range map[string]bool{
		`type: shell, spec: { command: 'rm -rf "${SWITCHYARD_SHARED_DIR}/x"' }`:                                                          true,
		`type: container, spec: { image: x, command: [sh, -c, ls $SWITCHYARD_SHARED_DIR/] }`:                                             true,
		`type: shell, spec: { command: [python3, -c, 'import os; os.environ["SWITCHYARD_SHARED_DIR"]'] }`:                                true,
		`type: subagent, spec: { prompt: write to $SWITCHYARD_SHARED_DIR }`:                                                              true,
		`type: shell, spec: { command: x }, env: { OUT: $SWITCHYARD_SHARED_DIR/out }`:                                                    true,
		`type: shell, spec: { command: "ls ${SWITCHYARD_SHARED_DIR:?}/" }`:                                                               true,
		`type: shell, spec: { command: "cd ${SWITCHYARD_SHARED_DIR:-/tmp}; ls $SWITCHYARD_SHARED_DIR-old" }`:                             true,
		`type: shell, spec: { command: "cd ${SWITCHYARD_SHARED_DIR:-/tmp}; ls ${SWITCHYARD_SHARED_DIR-.} ${SWITCHYARD_SHARED_DIR:+x}" }`: false,
		`type: shell, spec: { command: ls $SWITCHYARD_SHARED_DIRECTORY $MY_SWITCHYARD_SHARED_DIR }`:                                      false,
		`type: run, spec: { definition: { name: b, tasks: { a: { type: shell, spec: { command: ls $SWITCHYARD_SHARED_DIR } } } } }`:      false,
		`type: k8s_job, spec: { image: x, command: ls $SWITCHYARD_SHARED_DIR }`:                                                          false,
	} {
		def := parse(t, "a.yaml", fmt.Sprintf("name: a\ntasks: { a: { %s } }", task))
		if got := Constraints(def.GetTasks()["a"]).GetRequiresCapabilities()[v1.SharedDirCapability] == "true"; got != needs {
			t.Errorf("%s: needs the folder: %t", task, got)
		}
	}
}
