package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

// sessionNodesPage is the number of nodes that one request lists.
const sessionNodesPage = 1000

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
				Items []v1.AgentSession `json:"items"`
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
func listSessions(ctx context.Context, a *client.Client) ([]v1.AgentSession, error) {
	var nodes []*v1.Node
	for token := ""; ; {
		page, err := client.Call(ctx, a, a.Nodes.ListNodes, &v1.ListNodesRequest{PageSize: sessionNodesPage, PageToken: token})
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, page.GetItems()...)
		if token = page.GetNextPageToken(); token == "" {
			return append([]v1.AgentSession{}, v1.SessionsOf(nodes)...), nil
		}
	}
}
