package stack

import (
	"log/slog"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/secrets"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
)

// TestNodesHaveAnExecutorOfEachType checks the executors of nodes against the table of task types, and that nodes
// report what their settings let tasks use.
func TestNodesHaveAnExecutorOfEachType(t *testing.T) {
	s := &Stack{conn: &workers.Connection{}}
	_, containers, executors, err := s.newExecutors(Config{Nodes: make([]NodeConfig, 1), Logger: slog.New(slog.DiscardHandler)}, nil, t.TempDir(), nil)
	for _, c := range s.closers {
		t.Cleanup(func() { _ = c.stop() })
	}
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, name := range v1.TaskTypes() {
		if kind, _ := v1.FindTaskType(name); kind.OnNode {
			want = append(want, name)
		}
	}
	for _, e := range executors {
		got = append(got, e.Type())
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes have executors of %v; the table has %v", got, want)
	}
	allowed, err := secrets.ParseAllowlist([]string{"env:DEPLOY_*"})
	if err != nil {
		t.Fatal(err)
	}
	offered := newSupport(NodeConfig{
		VMs: VMConfig{Images: []string{"/images"}}, Containers: ContainerConfig{RegistryAuth: map[string]string{"hub": "/f"}}, Secrets: allowed,
		Agents: AgentConfig{Tools: []string{"files"}, KeyFiles: map[string]string{"openai": "/k"}},
	}, containers)()
	wantOffered := &v1.TaskSupport{
		VmImageDirs: []string{"/images"}, RegistryAuths: []string{"hub"}, Secrets: []string{"env:DEPLOY_*"}, AgentTools: []string{"files"}, Stop: true, GpuParts: true, AgentKeys: []string{"openai"},
		// These depend on the machine.
		Networks: offered.Networks, AgentPrograms: offered.AgentPrograms, Numactl: offered.Numactl, Interpreters: offered.Interpreters,
	}
	if !proto.Equal(offered, wantOffered) {
		t.Errorf("a node offers %v; want %v", offered, wantOffered)
	}
}
