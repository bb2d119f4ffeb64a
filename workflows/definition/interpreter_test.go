package definition

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

func TestShellsOfTasks(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"a word":              {"command: x, shell: bash", ""},
		"a list":              {"command: x, shell: [bash, -euo, pipefail, -c]", ""},
		"an expression":       {`command: x, shell: "${{ workflow.input.shell }}"`, ""},
		"in a list":           {`command: x, shell: ["${{ workflow.input.shell }}", -c]`, ""},
		"unknown":             {"command: x, shell: bahs", `w.yaml:4:32: spec.shell is "bahs", which is not a word for a shell ... did you mean bash?`},
		"another interpreter": {"command: x, shell: zsh", `write a list, to which the command is appended: [zsh, -c]`},
		"as elsewhere":        {`command: x, shell: "bash -e {0}"`, `[bash, -e, -c]`},
		"empty":               {"command: x, shell: []", "w.yaml:4:32: spec.shell is empty ... write one of"},
		"empty word":          {`command: x, shell: ""`, "spec.shell is empty"},
		"a number":            {"command: x, shell: [sh, 3]", "spec.shell has an item that cannot be used, number 2"},
		"a list command":      {"command: [a, b], shell: bash", "w.yaml:4:30: spec.shell is for a command that is a string"},
		"#! line":             {`command: "#!/bin/sh\nx", shell: bash`, "both say what runs it ... leave one of them out"},
		"no command":          {"image: x, shell: bash", "spec.shell is for a command that is a string"},
		"pwsh with arguments": {"image: x, command: x, args: [a], shell: pwsh", "spec.args do not reach a command that pwsh runs ... pass them through env"},
		"a job":               {"image: x, cluster: c, command: x, shell: bahs", "w.yaml:4:54: spec.shell is "},
		"no such spec":        {"workflow: x, shell: bash", `unknown field "shell"`},
	} {
		t.Run(name, func(t *testing.T) {
			kind := v1.TypeShell
			switch {
			case strings.Contains(test.spec, "cluster"):
				kind = v1.TypeK8sJob
			case strings.Contains(test.spec, "image"):
				kind = v1.TypeContainer
			case strings.Contains(test.spec, "workflow: "):
				kind = v1.TypeRun
			}
			_, err := Parse("w.yaml", []byte("name: w\ntasks:\n  t:\n    spec: { "+test.spec+" }\n    type: "+kind+"\n"))
			switch {
			case err == nil && test.want != "":
				t.Errorf("accepted, want %s", test.want)
			case err != nil && test.want == "":
				t.Error(err)
			case err != nil:
				rest := err.Error()
				for _, part := range strings.Split(test.want, " ... ") {
					if _, after, found := strings.Cut(rest, part); found {
						rest = after
					} else {
						t.Errorf("%v\nwant %s", err, part)
					}
				}
				if n := strings.Count(err.Error(), "w.yaml:"); n != 1 {
					t.Errorf("%d problems:\n%v", n, err)
				}
			}
		})
	}
}

func TestTasksInheritTheShell(t *testing.T) {
	const text = `
name: w
defaults: { spec: { shell: bash } }
tasks:
  inherits: { type: shell, spec: { command: x } }
  inside: { type: container, spec: { image: x, command: x } }
  outside: { type: k8s_job, spec: { image: x, command: x } }
  own: { type: shell, spec: { command: x, shell: sh } }
  line: { type: shell, spec: { command: "#!/bin/sh\nx" } }
  list: { type: shell, spec: { command: [x] } }
  image: { type: container, spec: { image: x } }
  other: { type: approval }
`
	def, err := Parse("w.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Complete(def)
	if err != nil {
		t.Fatal(err)
	}
	for task, want := range map[string]string{"inherits": "bash", "inside": "bash", "outside": "bash", "own": "sh", "line": "", "list": "", "image": "", "other": ""} {
		for _, d := range []*v1.Definition{def, again} {
			if got := d.GetTasks()[task].GetSpec().GetFields()["shell"].GetStringValue(); got != want {
				t.Errorf("%s has shell %q, want %q", task, got, want)
			}
		}
	}
	message := &v1.Definition{Name: "w", Defaults: &v1.TaskDefaults{Spec: &v1.SpecDefaults{Shell: structpb.NewStringValue("bahs")}}, Tasks: map[string]*v1.TaskDefinition{"t": {Type: "approval"}}}
	if _, err := Complete(message); err == nil || !strings.Contains(err.Error(), "defaults.spec.shell") {
		t.Errorf("a message with an unknown shell: error %v", err)
	}
	checked, err := ParseChecked("w.yaml", []byte("name: w\ndefaults: { spec: { shell: bash } }\ntasks: { t: { type: approval } }"))
	if err != nil || len(checked.Warnings) != 1 || !strings.Contains(checked.Warnings.Error(), "w.yaml:2:21: defaults.spec.shell has no effect") {
		t.Errorf("warnings %v, error %v", checked.Warnings, err)
	}
}
