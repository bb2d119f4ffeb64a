package web

import (
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// nodeFilters are the query parameters of the node list.
var nodeFilters = []string{"state", "label"}

// maxListedNodes bounds the nodes on a page.
const maxListedNodes = 1000

// nodesView is the data of the node list.
type nodesView struct {
	Nodes []nodeRow
	Tabs  []stateTab
	Label string
	// Total is the number of listed nodes, Left the number of nodes beyond maxListedNodes.
	Total, Left int
}

// nodeRow is a row of the list.
type nodeRow struct {
	*v1.Node
	Amounts []amount
	Actions []Action
}

// LiveID returns the id of the block.
func (r nodeRow) LiveID() string { return "node-" + r.GetName() }

func openNodes(w *Web, req request) viewSource {
	return newPolledSource(func(ctx context.Context) (viewData, error) {
		res, err := w.services.nodes.ListNodes(ctx, connect.NewRequest(&v1.ListNodesRequest{PageSize: maxListedNodes}))
		if err != nil {
			return viewData{}, err
		}
		all := res.Msg.GetItems()
		view := nodesView{
			Label: req.query.Get("label"), Tabs: nodeTabs(req, all), Total: len(all), Left: max(0, int(res.Msg.GetTotal())-len(all)),
		}
		for _, n := range all {
			if state := req.query.Get("state"); state != "" && n.GetState() != state || view.Label != "" && !slices.Contains(n.GetLabels(), view.Label) {
				continue
			}
			view.Nodes = append(view.Nodes, nodeRow{n, nodeAmounts(n), nodeRowActions(n, req)})
		}
		return viewData{"Nodes", "nodes", view}, nil
	})
}

// nodeRowActions returns the actions that the state of a node allows.
func nodeRowActions(n *v1.Node, req request) []Action {
	verbs := []string{"drain-node"}
	switch n.GetState() {
	case v1.NodeDraining:
		verbs = []string{"undrain-node"}
	case v1.NodeOffline:
		verbs = []string{"drain-node", "remove-node"}
	}
	var actions []Action
	for _, verb := range verbs {
		actions = append(actions, newAction(verb, n.GetName(), req.caller, "name", n.GetName()))
	}
	return actions
}

// nodeTabs returns a tab for each node state with the number of nodes.
func nodeTabs(req request, nodes []*v1.Node) []stateTab {
	current := req.query.Get("state")
	tabs := []stateTab{{"", withParameter(req.url(), "state", ""), int32(len(nodes)), current == ""}}
	for _, state := range v1.NodeStates() {
		var n int32
		for _, node := range nodes {
			if node.GetState() == state {
				n++
			}
		}
		tabs = append(tabs, stateTab{state, withParameter(req.url(), "state", state), n, current == state})
	}
	return tabs
}

// Abilities returns the sorted capabilities of a node as name=value.
func (r nodeRow) Abilities() []string {
	var all []string
	for name, value := range r.GetCapabilities() {
		all = append(all, strings.TrimSuffix(name+"="+value, "="))
	}
	slices.Sort(all)
	return all
}
