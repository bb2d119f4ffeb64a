package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"switchyard/activities/registry"
	"switchyard/cli/client"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
)

// examination is the state of the checks of one role.
type examination struct {
	Settings
	Surroundings

	// Set by checkGateways: the gateways that answer; of these a client of the first, or nil without one, and how far its
	// clock is ahead.
	answering []Gateway
	gateway   *client.Client
	skew      *time.Duration
	version   string
}

func (e *examination) close() {
	for _, gateway := range e.Gateways {
		gateway.Client.Close()
		gateway.Store.Close()
	}
}

// leader returns the heartbeat of the gateway that leads the fleet, and when the server received it. It is nil if none leads.
func (e *examination) leader(ctx context.Context) (*historyv1.LeaderHeartbeat, time.Time, error) {
	if e.Temporal == nil {
		return nil, time.Time{}, errNoTemporal
	}
	return registry.New(e.Temporal.Client).Leader(ctx)
}

// errNoTemporal is the error of checks that need Temporal. Why it does not answer is the finding of another check.
var errNoTemporal = errors.New("Temporal cannot be reached")

func (e *examination) checkTemporal(ctx context.Context) Finding {
	if e.Temporal == nil {
		return judgeTemporal("", "", e.TemporalError)
	}
	info, err := e.Temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	return judgeTemporal(info.GetServerVersion(), e.Temporal.Namespace, err)
}

func judgeTemporal(version, namespace string, err error) Finding {
	if err != nil {
		return failed("start Temporal, or name its address and namespace in TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE or in its profile file", "%v", err)
	}
	return ok("Temporal %s, namespace %s", version, namespace)
}

func (e *examination) checkAttributes(ctx context.Context) Finding {
	if e.Temporal == nil {
		return skipped("%v", errNoTemporal)
	}
	missing, err := e.Temporal.MissingAttributes(ctx)
	leader, _, leaderErr := e.leader(ctx)
	return judgeAttributes(e.Temporal.Namespace, missing, leader != nil, errors.Join(err, leaderErr))
}

// judgeAttributes judges the search attributes that a namespace lacks. The first gateway of a fleet registers them, so one that runs
// could not.
func judgeAttributes(namespace string, missing map[string]enumspb.IndexedValueType, hasLeader bool, err error) Finding {
	names := strings.Join(slices.Sorted(maps.Keys(missing)), ", ")
	switch {
	case err != nil:
		return failed("", "the search attributes of namespace %s cannot be read: %v", namespace, err)
	case len(missing) == 0:
		return ok("namespace %s has the search attributes of runs", namespace)
	case hasLeader:
		return failed("run `"+workers.RegisterCommand(namespace, missing)+"`", "namespace %s lacks %s, although a gateway runs", namespace, names)
	}
	return warning("start the gateway, which registers them if its account may; else run `"+workers.RegisterCommand(namespace, missing)+"`",
		"namespace %s lacks %s", namespace, names)
}
