package definition

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/secretref"
)

// GitSource returns where the files come from with which a task starts if the run was sent none, or nil.
func GitSource(in *historyv1.RunInput, task *v1.TaskDefinition) *v1.SourceDefinition {
	if source := in.GetDefinition().GetSource(); source.GetGit() != "" && in.GetSource() == nil && KeepsFiles(task) {
		return source
	}
	return nil
}

// Source returns what is known of the files with which the tasks of a run start, or nil if there are none. Those from git are not
// known before a node has fetched them.
func Source(in *historyv1.RunInput) *v1.Artifact {
	if in.GetSource() == nil && in.GetDefinition().GetSource().GetGit() != "" {
		return &v1.Artifact{Name: "source"}
	}
	return in.GetSource()
}

// SourceSecrets returns the references to secrets on its node that a task needs for the source of its run.
func SourceSecrets(in *historyv1.RunInput, task *v1.TaskDefinition) []string {
	if ref, fault := secretref.Parse(GitSource(in, task).GetSecret()); fault == nil && ref.Kind != secretref.Store {
		return []string{ref.String()}
	}
	return nil
}
