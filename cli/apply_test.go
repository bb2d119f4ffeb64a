package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// folder writes files into a folder of the test and returns the folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// planOf returns the reply of PlanWorkflow for the definition in text. stored is the definition that the gateway has under its
// name, or "" if it has none.
func planOf(t *testing.T, text, stored, owner string) *v1.PlanWorkflowResponse {
	t.Helper()
	must(t, lightValidator())
	next, err := definition.ParseChecked("f.yaml", []byte(text))
	must(t, err)
	res := &v1.PlanWorkflowResponse{Name: next.Definition.GetName(), Definition: next.Definition, Owner: owner}
	if stored != "" {
		before, err := definition.ParseChecked("f.yaml", []byte(stored))
		must(t, err)
		res.Stored = before.Definition
	}
	return res
}

func named(name, command string) string {
	return "name: " + name + "\ntasks:\n  a: { type: shell, spec: { command: " + command + " } }\n"
}

func TestApplyStoresWhatIsDifferent(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": named("a", "new"), "b.yml": named("b", "same"), "sub/c.json": `{"name": "c", "tasks": {"a": {"type": "shell", "spec": {"command": "next"}}}}`, ".hidden/d.yaml": "bad", "README.md": "bad"})
	f := fake(t)
	plans := func(later ...*v1.PlanWorkflowResponse) {
		script(f, slices.Concat([]*v1.PlanWorkflowResponse{
			planOf(t, named("a", "new"), "", ""), planOf(t, named("b", "same"), named("b", "same"), "yard"), planOf(t, named("c", "next"), named("c", "before"), "yard"),
		}, later)...)
		script(f, &v1.ListWorkflowsResponse{Items: []*v1.StoredWorkflow{{Name: "a", Owner: "yard"}, {Name: "old", Owner: "yard"}, {Name: "other", Owner: "else"}, {Name: "plain"}}})
	}
	args := []string{"apply", "-f", dir, "--owner", "yard", "--prune", "--gateway", f.url}
	plans()
	got := run(t, append(args, "--dry-run")...)
	want := "created    a\nunchanged  b\nchanged    c\n    --- stored c\n    +++ " + filepath.Join(dir, "sub/c.json") + "\n"
	if got.code != exit.CodeNotDone || !strings.HasPrefix(got.stdout, want) || !strings.Contains(got.stdout, "    -      command: before\n    +      command: next\n") || !strings.HasSuffix(got.stdout, "deleted    old\n") {
		t.Errorf("%+v", got)
	}
	if puts := requests[*v1.PutWorkflowRequest](f); len(puts) > 0 {
		t.Errorf("a dry run stores %v", puts)
	}
	script(f, &v1.PutWorkflowResponse{})
	script(f, &v1.DeleteWorkflowResponse{})
	missing := planOf(t, named("a", "new"), named("a", "new"), "yard")
	missing.Warnings = []*v1.Problem{{Message: "no workflow x is stored"}}
	plans(missing, planOf(t, named("c", "next"), named("c", "next"), "yard"))
	run(t, args...).ends(t, exit.CodeDone, "no workflow x is stored")
	var stored []string
	for _, put := range requests[*v1.PutWorkflowRequest](f) {
		stored = append(stored, filepath.Base(put.GetFile())+" "+put.GetOwner())
	}
	if !slices.Equal(stored, []string{"a.yaml yard", "c.json yard"}) {
		t.Errorf("stored %v", stored)
	}
	if deleted := requests[*v1.DeleteWorkflowRequest](f); len(deleted) != 1 || !proto.Equal(deleted[0], &v1.DeleteWorkflowRequest{Name: "old", Owner: "yard"}) {
		t.Errorf("deleted %v", deleted)
	}
}

func TestApplyRefusesBeforeItChangesAnything(t *testing.T) {
	f := fake(t)
	one := folder(t, map[string]string{"a.yaml": named("a", "new")})
	for name, test := range map[string]struct {
		args  []string
		reply *v1.PlanWorkflowResponse
		says  string
	}{
		"no folder":          {[]string{}, nil, "-f is missing"},
		"a folder without":   {[]string{"-f", t.TempDir()}, nil, "contains no definition"},
		"prune of any owner": {[]string{"-f", one, "--prune"}, nil, "name the owner"},
		"a name twice":       {[]string{"-f", folder(t, map[string]string{"a.yaml": named("a", "new"), "b.yaml": named("a", "new")})}, nil, "workflow a is also in"},
		"bad ones":           {[]string{"-f", folder(t, map[string]string{"a.yaml": "name: a\n", "b.yaml": "tasks: 1\n"})}, nil, "b.yaml"},
		"of nobody":          {[]string{"-f", one}, planOf(t, named("a", "new"), named("a", "old"), ""), "stored without an owner; leave it out of the folder, or take it over with --adopt"},
		"of another":         {[]string{"-f", one}, planOf(t, named("a", "new"), named("a", "new"), "else"), "is owned by else"},
	} {
		if test.reply != nil {
			script(f, test.reply)
		}
		run(t, append([]string{"apply", "--gateway", f.url}, test.args...)...).ends(t, exit.CodeUsage, test.says)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	if puts := requests[*v1.PutWorkflowRequest](f); len(puts) > 0 {
		t.Errorf("it stores %v", puts)
	}
}

func TestApplyAdoptsWhatIsTheSame(t *testing.T) {
	f := fake(t)
	script(f, planOf(t, named("a", "new"), named("a", "new"), ""))
	got := run(t, "apply", "-f", folder(t, map[string]string{"a.yaml": named("a", "new")}), "--adopt", "--dry-run", "--gateway", f.url)
	if got.code != exit.CodeNotDone || got.stdout != "adopted    a\n" {
		t.Errorf("%+v", got)
	}
}
