package policy

import (
	"slices"
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestUnsupported(t *testing.T) {
	support := &v1.TaskSupport{
		VmImageDirs: []string{"/images"}, RegistryAuths: []string{"hub"}, Networks: []string{"lab"}, AgentTools: []string{"files"},
		AgentKeys: []string{"openai"}, AgentPrograms: []string{"claude-code"}, Secrets: []string{"env:DEPLOY_*", "file:/run/secrets/*"}, Interpreters: []string{"bash"}, Stop: true, GpuParts: true,
	}
	for name, test := range map[string]struct {
		support *v1.TaskSupport
		needs   *historyv1.TaskNeeds
		want    []string
	}{
		"no needs":        {support, nil, nil},
		"unknown support": {nil, &historyv1.TaskNeeds{VmImage: "/x"}, nil},
		"all offered": {support, &historyv1.TaskNeeds{
			VmImage: "/images/a/b", RegistryAuth: "hub", Network: "lab", AgentTools: []string{"files"}, AgentKey: "openai",
			AgentProgram: "claude-code", Secrets: []string{"env:DEPLOY_KEY", "file:/run/secrets/x"}, Interpreters: []string{"bash"}, Stop: true, GpuParts: true,
		}, nil},
		"none offered": {&v1.TaskSupport{}, &historyv1.TaskNeeds{
			VmImage: "/images/a", RegistryAuth: "hub", Network: "lab", AgentTools: []string{"files"}, AgentKey: "openai",
			AgentProgram: "claude-code", Secrets: []string{"env:DEPLOY_KEY"}, Interpreters: []string{"bash"}, Stop: true, GpuParts: true,
		}, []string{
			"image /images/a (switchyard run --vm-images /images)", "registry credentials hub (switchyard run --registry-auth hub=FILE)",
			"network lab (docker network create lab)", "agent tool files (switchyard run --agent-tools files)",
			"a key for openai (switchyard run --agent-key-file openai=FILE)", "agent claude-code (install it on the node)",
			"interpreter bash (install it on the node, and restart the worker)",
			"stop of a task (upgrade its worker)", "parts of GPUs (upgrade its worker)",
			"secret env:DEPLOY_KEY (switchyard run --allow-secret env:DEPLOY_KEY)",
		}},
		"path that leaves the images": {support, &historyv1.TaskNeeds{VmImage: "/images/../etc/x"}, []string{"image /images/../etc/x (switchyard run --vm-images /etc)"}},
		"secret in a subfolder":       {support, &historyv1.TaskNeeds{Secrets: []string{"file:/run/secrets/a/b"}}, []string{"secret file:/run/secrets/a/b (switchyard run --allow-secret file:/run/secrets/a/b)"}},
		"every secret":                {&v1.TaskSupport{AllSecrets: true}, &historyv1.TaskNeeds{Secrets: []string{"file:/x"}}, nil},
	} {
		if got := Unsupported(test.support, test.needs, "run"); !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, test.want)
		}
	}
}
