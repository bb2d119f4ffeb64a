package definition

import (
	"fmt"
	"path"
	"slices"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"

	"github.com/bmatcuk/doublestar/v4"
)

// artifacts checks the artifacts of a task, and records the tasks that leave those with which it starts.
func (s *sight) artifacts(task *v1.TaskDefinition, at *source.Path) {
	at = at.Field("artifacts")
	seen := map[string]bool{}
	for i, out := range task.GetArtifacts().GetOut() {
		p := at.Field("out").Item(i)
		s.artifactPath(out.GetPath(), p.Field("path"))
		if at := p.Field("path"); !doublestar.ValidatePattern(out.GetPath()) {
			s.Fail(s.locate(at), at, out.GetPath()+" is not a valid pattern", "close its brackets and braces, or write a backslash before a literal one")
		}
		if seen[out.GetName()] {
			s.Fail(s.locate(p), p, "the task has two artifacts with the name "+out.GetName(), "give each a name of its own")
		}
		seen[out.GetName()] = true
	}
	for i, in := range task.GetArtifacts().GetIn() {
		p := at.Field("in").Item(i)
		s.artifactPath(in.GetPath(), p.Field("path"))
		s.artifactFrom(in.GetFrom(), p.Field("from"))
	}
}

// artifactPath checks a path in the folder of a task.
func (s *sight) artifactPath(name string, p *source.Path) {
	if leadsOut(name) {
		s.Fail(s.locate(p), p, fmt.Sprintf("%s leads out of the folder of the task", name), "paths of artifacts are relative to the folder in which the task starts")
	}
}

// leadsOut reports whether a path leads out of the folder that it starts from.
func leadsOut(name string) bool {
	clean := path.Clean(name)
	return path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsRune(name, 0)
}

// artifactFrom checks the name of an artifact with which the task starts.
func (s *sight) artifactFrom(from string, p *source.Path) {
	of, name := v1.SplitArtifact(from)
	if name == "" {
		s.Fail(s.locate(p), p, fmt.Sprintf("%q does not name an artifact", from), "an artifact is named by its task: <task>.<name>")
		return
	}
	if !slices.Contains(s.above(), of) && !slices.Contains(s.ended(), of) {
		self := s.graph.names[s.number]
		switch {
		case of == self:
			s.Fail(s.locate(p), p, "the task would start with what it leaves itself", "name a task upstream")
		case !slices.Contains(s.graph.names, of):
			s.Fail(s.locate(p), p, "there is no task "+of, nearest.DidYouMean(of, s.graph.names))
		default:
			s.Fail(s.locate(p), p, of+" is not upstream of "+self, "add it to dependsOn")
		}
		return
	}
	if !slices.Contains(s.left[of], name) {
		s.Fail(s.locate(p), p, fmt.Sprintf("task %s leaves no artifact %s", of, name), artifactHint(of, name, s.left[of]))
		return
	}
	if s.found == nil {
		s.found = &historyv1.ConditionReferences{}
	}
	s.found.Templates = merge(s.found.Templates, []string{of})
}

// artifactHint returns the remedy for the name of an artifact that a task does not leave.
func artifactHint(of, name string, names []string) string {
	if near := nearest.Word(name, names); near != "" {
		return "did you mean " + of + "." + near + "?"
	}
	if len(names) == 0 {
		return "add artifacts: {out: [{name: " + name + ", path: ...}]} to " + of
	}
	return "it leaves: " + strings.Join(names, ", ")
}
