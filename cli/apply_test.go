package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
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
	plans := func(warnings ...*v1.Problem) {
		first := planOf(t, named("a", "new"), "", "")
		first.Warnings = warnings
		script(f, first, planOf(t, named("b", "same"), named("b", "same"), "yard"), planOf(t, named("c", "next"), named("c", "before"), "yard"))
		script(f, &v1.ListWorkflowsResponse{Items: []*v1.StoredWorkflow{{Name: "a", Owner: "yard"}, {Name: "old", Owner: "yard"}, {Name: "other", Owner: "else"}, {Name: "plain"}}})
	}
	args := []string{"apply", "-f", dir, "--owner", "yard", "--prune", "--gateway", f.url}
	plans()
	got := run(t, append(args, "--dry-run")...)
	want := "created    a\nunchanged  b\nchanged    c\n    --- stored c\n    +++ " + filepath.Join(dir, "sub/c.json") + "\n"
	if got.ends(t, exit.CodeNotDone, dryRunNote); !strings.HasPrefix(got.stdout, want) || !strings.Contains(got.stdout, "    -      command: before\n    +      command: next\n") || !strings.HasSuffix(got.stdout, "deleted    old\n") {
		t.Errorf("%+v", got)
	}
	if puts := requests[*v1.PutWorkflowRequest](f); len(puts) > 0 {
		t.Errorf("a dry run stores %v", puts)
	}
	script(f, &v1.PutWorkflowResponse{})
	script(f, &v1.DeleteWorkflowResponse{})
	plans(&v1.Problem{Message: "no workflow x is stored"})
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
	linked, joined := folder(t, map[string]string{"a.yaml": named("a", "new")}), folder(t, map[string]string{"a.yaml": named("a", "new")})
	must(t, os.Symlink("/etc/hosts", filepath.Join(linked, "b.yaml")))
	must(t, os.Symlink(one, filepath.Join(joined, "sub")))
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no folder":           {[]string{}, "-f is missing"},
		"a folder without":    {[]string{"-f", t.TempDir()}, "contains no definition"},
		"prune of any owner":  {[]string{"-f", one, "--prune"}, "name the owner"},
		"a name twice":        {[]string{"-f", folder(t, map[string]string{"a.yaml": named("a", "new"), "b.yaml": named("a", "new")})}, "workflow a is also in"},
		"bad ones":            {[]string{"-f", folder(t, map[string]string{"a.yaml": "name: a\n", "b.yaml": "tasks: 1\n"})}, "b.yaml"},
		"prune of nobody":     {[]string{"-f", one, "--prune", "--owner", ""}, "--owner is empty"},
		"prune of a file":     {[]string{"-f", filepath.Join(one, "a.yaml"), "--prune", "--owner", "yard"}, "give the folder"},
		"standard input":      {[]string{"-f", "-"}, "give a folder with definitions"},
		"a link out of it":    {[]string{"-f", linked}, "leads out of the folder"},
		"a linked folder":     {[]string{"-f", joined}, "link to a folder"},
		"a name twice in all": {[]string{"-f", one, "-f", filepath.Join(one, "a.yaml")}, "workflow a is also in"},
	} {
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
	if got.code != exit.CodeNotDone || got.stdout != "adopted    a  (had no owner)\n" {
		t.Errorf("%+v", got)
	}
}

// What another owner has stored is refused, with everything else that the gateway refuses, before anything is stored.
func TestApplyLeavesWhatAnotherOwns(t *testing.T) {
	f := fake(t)
	script(f, (*v1.PlanWorkflowResponse)(nil))
	f.absent = connect.NewError(connect.CodeAborted, errors.New("workflow a is owned by else"))
	run(t, "apply", "-f", folder(t, map[string]string{"a.yaml": named("a", "new")}), "--gateway", f.url).
		ends(t, exit.CodeUsage, "is owned by else; leave it out of the folder, or take it over with --adopt")
	if plans := requests[*v1.PlanWorkflowRequest](f); len(plans) != 1 || plans[0].GetOwner() != "apply" {
		t.Errorf("planned %v", plans)
	}
}

// Workflows that runs start in any case are stored first, and each plan knows the documents of the folder that it refers to and
// what will be deleted. A link within the folder, and a linked folder that is named itself, are read.
func TestApplyPlansTheWholeFolder(t *testing.T) {
	calls := func(name, other string) string {
		return "name: " + name + "\ntasks:\n  go: { type: run, spec: { workflow: " + other + " } }\n"
	}
	dir := folder(t, map[string]string{"a.yaml": calls("a", "b"), "b.yaml": calls("b", "c"), "sub/c.json": named("c", "x")})
	must(t, os.Rename(filepath.Join(dir, "sub/c.json"), filepath.Join(dir, "sub/text")))
	must(t, os.Symlink("sub/text", filepath.Join(dir, "c.yaml")))
	link := filepath.Join(t.TempDir(), "current")
	must(t, os.Symlink(dir, link))
	f := fake(t)
	script(f, &v1.ListWorkflowsResponse{Items: []*v1.StoredWorkflow{{Name: "old", Owner: "yard"}}})
	script(f, planOf(t, named("c", "x"), "", ""), planOf(t, calls("b", "c"), "", ""), planOf(t, calls("a", "b"), "", ""))
	got := run(t, "apply", "-f", link, "--owner", "yard", "--prune", "--dry-run", "--gateway", f.url)
	if got.stdout != "created    c\ncreated    b\ncreated    a\ndeleted    old\n" {
		t.Errorf("%+v", got)
	}
	var beside []int
	for _, plan := range requests[*v1.PlanWorkflowRequest](f) {
		if beside = append(beside, len(plan.GetAlongside())); !slices.Equal(plan.GetDeleted(), []string{"old"}) {
			t.Errorf("deleted are %v", plan.GetDeleted())
		}
	}
	if !slices.Equal(beside, []int{0, 1, 2}) {
		t.Errorf("planned with %v others", beside)
	}
}

// A pause by hand is a difference only if the definition says otherwise.
func TestApplySetsThePauseOfTheDefinition(t *testing.T) {
	for text, action := range map[string]string{
		"name: a\nschedule: { cron: 0 3 * * *, paused: false }\ntasks: { a: { type: shell, spec: { command: x } } }\n": "changed    a\n    the definition says schedule.paused: false, and the schedule is otherwise\n",
		"name: a\nschedule: { cron: 0 3 * * * }\ntasks: { a: { type: shell, spec: { command: x } } }\n":                "unchanged  a\n",
	} {
		f := fake(t)
		plan := planOf(t, text, text, "apply")
		plan.Schedule = &v1.Schedule{Paused: true}
		script(f, plan)
		if got := run(t, "apply", "-f", folder(t, map[string]string{"a.yaml": text}), "--dry-run", "--gateway", f.url); got.stdout != action {
			t.Errorf("%+v", got)
		}
	}
}

// An apply that fails says how far it came, and lists only what it has done.
func TestApplyThatFailsSaysWhatIsDone(t *testing.T) {
	f := fake(t)
	script(f, planOf(t, named("a", "x"), "", ""), planOf(t, named("b", "x"), "", ""))
	script(f, (*v1.PutWorkflowResponse)(nil))
	f.absent = connect.NewError(connect.CodeUnavailable, errors.New("gone"))
	got := run(t, "apply", "-f", folder(t, map[string]string{"a.yaml": named("a", "x"), "b.yaml": named("b", "x")}), "--gateway", f.url)
	if got.ends(t, exit.CodeSystem, "0 of 2 definitions are as they should be"); got.stdout != "" {
		t.Errorf("%+v", got)
	}
}
