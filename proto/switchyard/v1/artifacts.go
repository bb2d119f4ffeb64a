package switchyardv1

import "strings"

// ArtifactsCapability is "true" on nodes that store and fetch the artifacts of tasks.
const ArtifactsCapability = "artifacts"

// WorkspacesCapability is "true" on nodes that keep the folders that tasks share.
const WorkspacesCapability = "workspaces"

// GangCapability is "true" on nodes that reserve places for the members of gangs.
const GangCapability = "gangs"

// GitCapability is "true" on nodes that have the program git.
const GitCapability = "git"

// IfNoneIgnore is the value of ArtifactOut.if_none with which an attempt may leave nothing at the path of an artifact.
const IfNoneIgnore = "ignore"

// SplitArtifact splits the name of an artifact of another task, <task>.<name>.
func SplitArtifact(from string) (task, name string) {
	task, name, _ = strings.Cut(from, ".")
	return task, name
}

// ArtifactNamed returns the artifact with a name, or nil.
func ArtifactNamed(all []*Artifact, name string) *Artifact {
	for _, a := range all {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}
