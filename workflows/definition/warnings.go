package definition

import (
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// withoutExecutor are the task types that no executor runs yet.
var withoutExecutor = []string{v1.TypeVPS, v1.TypeK8sJob, v1.TypeSubagent, v1.TypeClaudeRelay}

// Warnings returns what a checked definition may hold and will hardly do what its
// author means. They have paths but no positions.
func Warnings(def *v1.Definition) source.Problems {
	r := &source.Report{}
	for _, name := range slices.Sorted(maps.Keys(def.GetTasks())) {
		if kind := def.GetTasks()[name].GetType(); slices.Contains(withoutExecutor, kind) {
			r.Add(source.Position{}, source.Root.Field("tasks").Key(name).Field("type"),
				"no node can run tasks of type "+kind+" yet; this one would wait for ever", "use shell or container")
		}
	}
	return r.Kept
}
