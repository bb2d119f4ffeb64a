package workspace

import (
	"strconv"
	"strings"
)

const ownPrefix = "SWITCHYARD_"

// Env is the task's own environment with the contract's variables over it, of which those
// without a value are not set: a script that deletes "$SWITCHYARD_SHARED_DIR"/cache is to fail
// under `set -u`, and not to find out which folder that is. A
// task cannot set a variable SWITCHYARD_*, but for the command's settings
// SWITCHYARD_GATEWAY and SWITCHYARD_TOKEN. The caller owns the map.
func (w *Workspace) Env() map[string]string {
	r := &w.request
	env := make(map[string]string, len(r.Env)+16)
	for key, value := range r.Env {
		if !reserved(key) {
			env[key] = value
		}
	}
	for key, value := range map[string]string{
		"RUN_ID":         r.RunID,
		"WORKFLOW":       r.Workflow,
		"TASK":           r.Task,
		"TASK_ID":        r.TaskID,
		"ATTEMPT":        strconv.Itoa(r.Attempt),
		"NODE":           r.Node,
		"INDEX":          strconv.Itoa(r.Index),
		"COUNT":          strconv.Itoa(max(r.Count, 1)),
		"INPUT":          w.path(inputFile),
		"OUTPUT":         w.path(outputFile),
		"CONTEXT_UPDATE": w.path(contextUpdateFile),
		"CHECKPOINT":     w.path(checkpointFile),
		"SHARED_DIR":     r.SharedDir,
		"LOCAL_TEMP_DIR": w.dir.temp,
	} {
		if value != "" {
			env[ownPrefix+key] = value
		}
	}
	if r.Item != nil {
		env[ownPrefix+"ITEM"] = itemText(r.Item)
	}
	if r.NUMANode != nil {
		env[ownPrefix+"TARGET_NUMA_NODE"] = strconv.Itoa(*r.NUMANode)
	}
	return env
}

// reserved reports whether a variable is not for a task to set.
func reserved(key string) bool {
	switch key {
	case "SWITCHYARD_GATEWAY", "SWITCHYARD_TOKEN":
		return false
	}
	return strings.HasPrefix(key, ownPrefix)
}
