package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

// sessionNodesPage is the number of nodes that one request lists.
const sessionNodesPage = 1000

// agentSession is a session of an agent on a node.
type agentSession struct {
	Session string `json:"session"`
	Node    string `json:"node"`
	State   string `json:"state"` // state of the node
}

func newAgentSessions(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the agent sessions that tasks can message, by name",
		Args:  arguments(0, 0, ""),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON, output.JSONL)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		sessions, err := listSessions(ctx, a)
		if err != nil {
			return err
		}
		switch format.Value {
		case output.JSON:
			return output.WriteJSON(sys.stdout, struct {
				Items []agentSession `json:"items"`
			}{sessions})
		case output.JSONL:
			for _, s := range sessions {
				if err := output.WriteLine(sys.stdout, s); err != nil {
					return err
				}
			}
			return nil
		}
		rows := [][]string{{"SESSION", "NODE", "STATE"}}
		for _, s := range sessions {
			rows = append(rows, []string{s.Session, s.Node, s.State})
		}
		return output.WriteTable(sys.stdout, output.Fit(rows, sys.dataWidth(), 2))
	})
	return cmd
}

// listSessions returns the sessions on all nodes, sorted by name. The result is never nil.
func listSessions(ctx context.Context, a *client.Client) ([]agentSession, error) {
	sessions := []agentSession{}
	for token := ""; ; {
		page, err := client.Call(ctx, a, a.Nodes.ListNodes, &v1.ListNodesRequest{PageSize: sessionNodesPage, PageToken: token})
		if err != nil {
			return nil, err
		}
		for _, n := range page.GetItems() {
			for key := range n.GetCapabilities() {
				if id, ok := v1.SessionOfCapability(key); ok {
					sessions = append(sessions, agentSession{Session: id, Node: n.GetName(), State: n.GetState()})
				}
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	slices.SortFunc(sessions, func(a, b agentSession) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Node, b.Node))
	})
	return sessions, nil
}
