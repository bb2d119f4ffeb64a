package web

import "slices"

// Names of the services that actions call.
const (
	runService      = "switchyard.v1.RunService."
	nodeService     = "switchyard.v1.NodeService."
	workflowService = "switchyard.v1.WorkflowService."
	scheduleService = "switchyard.v1.ScheduleService."
)

// actionKinds are all actions, by their verbs.
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
