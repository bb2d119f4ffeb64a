package web

import (
	"context"
	"net/url"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// Names of the services that actions call.
const (
	runService      = "switchyard.v1.RunService."
	nodeService     = "switchyard.v1.NodeService."
	workflowService = "switchyard.v1.WorkflowService."
	scheduleService = "switchyard.v1.ScheduleService."
)

// actionKinds are all actions, by their verbs.
var actionKinds = kindsByVerb(
	actionKind{
		verb: "cancel-run", label: "Cancel", call: runService + "CancelRun", asks: "Cancel run %s? What runs is stopped.", reason: true,
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.runs.CancelRun(ctx, connect.NewRequest(&v1.CancelRunRequest{Id: form.Get("run"), Reason: form.Get(reasonField)}))
			return "Run " + form.Get("run") + " is being cancelled.", "", err
		},
	},
)

func kindsByVerb(kinds ...actionKind) map[string]actionKind {
	byVerb := make(map[string]actionKind, len(kinds))
	for _, k := range kinds {
		byVerb[k.verb] = k
	}
	return byVerb
}
