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

// The commands of an agent need a sandbox, or a container engine for their image.
func TestAgentsWithCommandsNeedAPlaceForThem(t *testing.T) {
	task := func(fields map[string]any) *v1.Constraints {
		spec, err := structpb.NewStruct(fields)
		if err != nil {
			t.Fatal(err)
		}
		return Constraints(&v1.TaskDefinition{Type: v1.TypeSubagent, Spec: spec})
	}
	shell := []any{"shell"}
	if c := task(map[string]any{"tools": shell}); c.GetRequiresCapabilities()["sandbox"] != "true" || len(c.GetRequiresExecutors()) != 0 {
		t.Errorf("in a sandbox: %v", c)
	}
	if c := task(map[string]any{"tools": shell, "image": "x"}); len(c.GetRequiresCapabilities()) != 0 || len(c.GetRequiresExecutors()) != 1 {
		t.Errorf("in an image: %v", c)
	}
	if c := task(map[string]any{"tools": []any{"files"}, "image": "x"}); c != nil {
		t.Errorf("without commands: %v", c)
	}
}

// A task that names the shared folder goes to a node that has one.
func TestTaskThatNamesTheSharedFolderNeedsIt(t *testing.T) {
	command := func(text string) map[string]any { return map[string]any{"command": text} }
	for name, test := range map[string]struct {
		taskType string
		spec     map[string]any
		env      map[string]string
		needs    bool
	}{
		"in braces":        {v1.TypeShell, command(`rm -rf "${SWITCHYARD_SHARED_DIR}/x"`), nil, true},
		"in a list":        {v1.TypeContainer, map[string]any{"command": []any{"sh", "-c", "ls $SWITCHYARD_SHARED_DIR/"}}, nil, true},
		"in a program":     {v1.TypeShell, command(`python3 -c 'import os; os.environ["SWITCHYARD_SHARED_DIR"]'`), nil, true},
		"of an agent":      {v1.TypeSubagent, map[string]any{"prompt": "write to $SWITCHYARD_SHARED_DIR"}, nil, true},
		"in env":           {v1.TypeShell, command("true"), map[string]string{"OUT": "$SWITCHYARD_SHARED_DIR/out"}, true},
		"with an error":    {v1.TypeShell, command("ls ${SWITCHYARD_SHARED_DIR:?}/"), nil, true},
		"fallback and not": {v1.TypeShell, command("cd ${SWITCHYARD_SHARED_DIR:-/tmp}; ls $SWITCHYARD_SHARED_DIR-old"), nil, true},
		"fallback":         {v1.TypeShell, command("cd ${SWITCHYARD_SHARED_DIR:-/tmp}; ls ${SWITCHYARD_SHARED_DIR-.} ${SWITCHYARD_SHARED_DIR:+x}"), nil, false},
		"another variable": {v1.TypeShell, command("ls $SWITCHYARD_SHARED_DIRECTORY $MY_SWITCHYARD_SHARED_DIR"), nil, false},
		"none":             {v1.TypeShell, command("true"), nil, false},
		"in a child":       {v1.TypeRun, map[string]any{"definition": map[string]any{"tasks": map[string]any{"a": command("ls $SWITCHYARD_SHARED_DIR")}}}, nil, false},
		"in a Job":         {v1.TypeK8sJob, command("ls $SWITCHYARD_SHARED_DIR"), nil, false},
	} {
		spec, err := structpb.NewStruct(test.spec)
		if err != nil {
			t.Fatal(err)
		}
		c := Constraints(&v1.TaskDefinition{Type: test.taskType, Spec: spec, Env: test.env})
		if got := c.GetRequiresCapabilities()[v1.SharedDirCapability] == "true"; got != test.needs {
			t.Errorf("%s: needs the folder: %t", name, got)
		}
	}
	sandboxed, err := structpb.NewStruct(map[string]any{"command": "ls $SWITCHYARD_SHARED_DIR", "sandbox": true})
	if err != nil {
		t.Fatal(err)
	}
	if c := Constraints(&v1.TaskDefinition{Type: v1.TypeShell, Spec: sandboxed}); len(c.GetRequiresCapabilities()) != 2 {
		t.Errorf("in a sandbox: %v", c)
	}
}
