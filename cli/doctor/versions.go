package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"switchyard/activities/registry"
	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
)

// nodesPage is the size of a page of nodes.
const nodesPage = 1000

// checkVersions compares the version of this program with those of the gateways and workers.
func (e *examination) checkVersions(ctx context.Context) Finding {
	others := map[string]string{}
	var nodes []*v1.Node
	switch {
	case e.Role != RoleClient && e.Temporal != nil:
		leader, _, err := e.leader(ctx)
		if err == nil && leader != nil {
			others["the gateway that leads"] = leader.GetVersion()
		}
		if nodes, err = registry.New(e.Temporal.Client).List(ctx); err != nil {
			return skipped("the nodes cannot be listed: %v", err)
		}
	case e.version != "":
		others["the gateway"] = e.version
		if e.Role == RoleWorker {
			break
		}
		res, err := client.Call(ctx, e.gateway, e.gateway.Nodes.ListNodes, &v1.ListNodesRequest{PageSize: nodesPage})
		if err != nil {
			return skipped("the nodes cannot be listed: %v", err)
		}
		nodes = res.GetItems()
	default:
		return skipped("neither Temporal nor the gateway can be asked")
	}
	for _, n := range nodes {
		if n.GetState() != v1.NodeOffline {
			others["node "+n.GetName()] = n.GetCapabilities()[node.VersionCapability]
		}
	}
	return judgeVersions(e.Version, others)
}

// maxNamed is how many processes of another version a finding names.
const maxNamed = 5

// judgeVersions judges the versions of others, by what runs them. Processes that name no version are older than this one.
func judgeVersions(own string, others map[string]string) Finding {
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(others)) {
		switch others[name] {
		case own:
		case "":
			differ = append(differ, name+" names none")
		default:
			differ = append(differ, name+" has "+others[name])
		}
	}
	if len(differ) == 0 {
		return ok("%s, like all %d that run", own, len(others))
	}
	named := strings.Join(differ[:min(maxNamed, len(differ))], ", ")
	if more := len(differ) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return warning("upgrade the gateways first, then the workers, then this program if it is older", "this program has the version %s, but %s", own, named)
}
