package definition

import (
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// withoutExecutor are the task types that no executor runs yet.
var withoutExecutor = []string{v1.TypeVPS, v1.TypeK8sJob, v1.TypeSubagent, v1.TypeClaudeRelay}

// Warnings returns what a checked definition may hold and will hardly do what its
// author means. They have paths but no positions.
func Warnings(def *v1.Definition) Problems {
	r := &report{}
	for _, name := range slices.Sorted(maps.Keys(def.GetTasks())) {
		if kind := def.GetTasks()[name].GetType(); slices.Contains(withoutExecutor, kind) {
			r.add(position{}, root.field("tasks").key(name).field("type"),
				"no node can run tasks of type "+kind+" yet; this one would wait for ever", "use shell or container")
		}
	}
	return r.kept
}
