package web

import "slices"

// Prefixes of the calls that actions make.
const (
	runService      = "switchyard.v1.RunService."
	nodeService     = "switchyard.v1.NodeService."
	workflowService = "switchyard.v1.WorkflowService."
	scheduleService = "switchyard.v1.ScheduleService."
)

// actionKinds holds all actions by verb.
var actionKinds = kindsByVerb(slices.Concat(
	runActions,
	deadLetterActions,
	nodeActions,
	scheduleActions,
	workflowActions,
	deadLetterActions,
	nodeActions,
	taskActions,
))

func kindsByVerb(kinds []actionKind) map[string]actionKind {
	byVerb := make(map[string]actionKind, len(kinds))
	for _, k := range kinds {
		byVerb[k.verb] = k
	}
	return byVerb
}
