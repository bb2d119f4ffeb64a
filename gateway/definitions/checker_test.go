package definitions

import (
	"context"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/activities/library"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// fakeLibrary holds a definition without tasks under each of its names.
type fakeLibrary []string

func (l fakeLibrary) Get(_ context.Context, name string) (*library.Stored, error) {
	for _, stored := range l {
		if stored == name {
			return &library.Stored{Definition: &v1.Definition{Name: name}}, nil
		}
	}
	return nil, library.ErrUnknown
}

func (l fakeLibrary) List(context.Context) ([]*library.Stored, error) {
	var all []*library.Stored
	for _, name := range l {
		all = append(all, &library.Stored{Definition: &v1.Definition{Name: name}})
	}
	return all, nil
}

// TestMissingWorkflowsAreFound checks a definition that refers to stored workflows and to one that is not stored.
func TestMissingWorkflowsAreFound(t *testing.T) {
	t.Parallel()
	c := Checker{Library: fakeLibrary{"build", "deploy"}}
	checked, err := c.Parse(nil, "", `
name: release
tasks:
  a: { type: run, spec: { workflow: build } }
  b: { type: run, spec: { workflow: deploi } }
`)
	if err != nil {
		t.Fatal(err)
	}
	missing, err := c.FindMissing(t.Context(), checked.Stored)
	if err != nil || len(missing) != 1 || !strings.HasPrefix(missing[0].GetPath(), "tasks.b") || !strings.Contains(missing[0].GetHint(), "deploy") {
		t.Errorf("found %v, %v", missing, err)
	}
}

func TestUnknownNameSuggestsASimilarOne(t *testing.T) {
	t.Parallel()
	c := Checker{Library: fakeLibrary{"build"}}
	_, err := c.Read(t.Context(), &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: "biuld"}})
	if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "build") {
		t.Errorf("an unknown name: %v", err)
	}
	_, err = c.Read(t.Context(), &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: "no name"}})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a bad name: %v", err)
	}
}

type fakeTargets []string

func (f fakeTargets) List(context.Context) (all []*v1.NotificationTarget, warnings []string, err error) {
	for _, name := range f {
		all = append(all, &v1.NotificationTarget{Name: name})
	}
	return all, nil, nil
}

type fakeNodes []string

func (f fakeNodes) KeptFor(context.Context) ([]string, error) { return f, nil }

// TestTolerationsWithoutNodesAreWarnedOf checks that each word is named once, at its first place.
func TestTolerationsWithoutNodesAreWarnedOf(t *testing.T) {
	t.Parallel()
	c := Checker{Nodes: fakeNodes{"gpu", "label=training"}}
	checked, err := c.Parse(nil, "t.yaml", `name: t
tasks:
  a: { type: shell, spec: { command: x }, constraints: { tolerates: [gpu, training] } }
  b: { type: shell, spec: { command: x }, constraints: { tolerates: [trainign] } }
  c: { type: shell, spec: { command: x }, constraints: { tolerates: [trainign, night] } }
`)
	if err != nil {
		t.Fatal(err)
	}
	got := c.WarnOfTolerations(t.Context(), checked.Tolerated).Error()
	for _, want := range []string{"t.yaml:4:70: no node is kept for \"trainign\"", "did you mean training?", "t.yaml:5:80: no node is kept for \"night\"", "--reserve-for label=night"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if strings.Count(got, "no node is kept for") != 2 {
		t.Error(got)
	}
	c.Nodes = fakeNodes{}
	if got := c.WarnOfTolerations(t.Context(), checked.Tolerated[:1]).Error(); !strings.Contains(got, "--only-for gpu") {
		t.Error(got)
	}
}

func TestUnknownTargetsAreWarnedOf(t *testing.T) {
	t.Parallel()
	c := Checker{Targets: fakeTargets{"ops", "team"}}
	checked, err := c.Parse(nil, "ci.yaml", `name: ci
tasks: { a: { type: shell, spec: { command: x } } }
notify:
  - { to: ops, on: [failed] }
  - { to: tema, on: [failed] }
  - { to: boss, on: [failed] }
`)
	if err != nil {
		t.Fatal(err)
	}
	got := c.WarnOfTargets(t.Context(), checked.Told).Error()
	for _, want := range []string{"ci.yaml:5:11: no notification target is stored under the name \"tema\"", "did you mean team?", "ci.yaml:6:11: ", "`switchyard notifications put boss --type TYPE"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if strings.Contains(got, "ci.yaml:4") {
		t.Errorf("a stored target is warned of: %s", got)
	}
}
