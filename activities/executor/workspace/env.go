package workspace

import (
	"strconv"
	"strings"

	"switchyard/workflows/interpreter"
)

const (
	ownPrefix    = "SWITCHYARD_"
	itemVariable = ownPrefix + "ITEM"
)

// Env returns the task's own environment, overlaid with the variables of the contract. Variables without a value stay
// unset: under `set -u`, a script that deletes "$SWITCHYARD_SHARED_DIR"/cache must fail rather than delete another
// folder. An item that is too long for a variable counts as none. A task cannot set SWITCHYARD_* variables, except SWITCHYARD_GATEWAY and SWITCHYARD_TOKEN, which are settings
// of the command. The caller owns the map.
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
	if r.Item != nil && !w.OmitsItem() {
		env[itemVariable] = itemText(r.Item)
	}
	if r.NUMANode != nil {
		env[ownPrefix+"TARGET_NUMA_NODE"] = strconv.Itoa(*r.NUMANode)
	}
	if r.Gang != nil {
		hosts := r.Gang.Hosts
		env[ownPrefix+"GANG_SIZE"] = strconv.Itoa(len(hosts))
		env[ownPrefix+"GANG_RANK"] = strconv.Itoa(r.Index)
		env[ownPrefix+"GANG_HOSTS"] = strings.Join(hosts, ",")
		env[ownPrefix+"GANG_MASTER_ADDR"] = hosts[0]
		env[ownPrefix+"GANG_MASTER_PORT"] = strconv.Itoa(r.Gang.MasterPort)
	}
	return env
}

// OmitsItem reports whether the item of the instance is too long for its variable.
func (w *Workspace) OmitsItem() bool {
	return w.request.Item != nil && !interpreter.FitsVariable(itemVariable, itemText(w.request.Item))
}

// reserved reports whether a task may not set a variable.
func reserved(key string) bool {
	switch key {
	case "SWITCHYARD_GATEWAY", "SWITCHYARD_TOKEN":
		return false
	}
	return strings.HasPrefix(key, ownPrefix)
}
