package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newTop(sys *system) *cobra.Command {
	tasks := &v1.ListTasksRequest{State: v1.TaskRunning}
	var limit int32
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what the nodes have in use, and the tasks that run",
		Long: `Shows what the nodes have in use of their slots, cores, memory and GPUs, and the tasks that
run now. In use are cores and GPUs that are reserved for tasks, and memory that is reserved
or not available. "watch switchyard top" repeats it every two seconds.`,
		Args: arguments(0, 0, ""),
	}
	clientFlag(cmd)
	cmd.Flags().StringVar(&tasks.Node, "node", "", "only this node and its tasks")
	cmd.Flags().Int32Var(&limit, "limit", 50, "maximum number of tasks to show, up to 1000")
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		if err := (&listing{limit: limit, most: 1000}).check(); err != nil {
			return err
		}
		nodes, err := topNodes(ctx, a, tasks.GetNode())
		if err != nil {
			return err
		}
		running, err := fillTaskPage(ctx, a, tasks, limit, "")
		if err != nil {
			return err
		}
		for _, warning := range running.GetWarnings() {
			fmt.Fprintf(sys.screen, "warning: %s\n", words.OneLine(warning))
		}
		if format.Value == output.JSON {
			return writeTopJSON(sys, nodes, running.GetItems())
		}
		return sys.writeTop(nodes, running)
	})
	return cmd
}

// topNodes returns the node of a name, or all nodes if the name is "".
func topNodes(ctx context.Context, a *client.Client, name string) ([]*v1.Node, error) {
	if name != "" {
		res, err := client.Call(ctx, a, a.Nodes.GetNode, &v1.GetNodeRequest{Name: name})
		return []*v1.Node{res.GetNode()}, err
	}
	var nodes []*v1.Node
	for req := (&v1.ListNodesRequest{}); ; {
		page, err := client.Call(ctx, a, a.Nodes.ListNodes, req)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, page.GetItems()...)
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return nodes, nil
		}
	}
}

// writeTop writes the nodes and the running tasks for people.
func (s *system) writeTop(nodes []*v1.Node, running *v1.ListTasksResponse) error {
	rows := [][]string{{"NODE", "STATE", "TASKS", "CORES", "MEMORY", "GPUS", "NOTE"}}
	for _, n := range nodes {
		rows = append(rows, []string{
			n.GetName(), n.GetState(), fmt.Sprintf("%d/%d", n.GetRunning(), n.GetMaxParallel()),
			share(used(n.GetCores()), 1, ""), share(used(n.GetMemoryMb()), 1024, " GiB"), share(used(n.GetGpus()), 1, ""), s.nodeNote(n),
		})
	}
	if err := output.WriteTable(s.stdout, output.Fit(rows, s.dataWidth(), 2)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(s.stdout); err != nil {
		return err
	}
	if len(running.GetItems()) == 0 {
		_, err := fmt.Fprintln(s.stdout, "no tasks are running")
		return err
	}
	rows = [][]string{{"RUN", "TASK", "TYPE", "NODE", "STARTED", "ELAPSED"}}
	for _, t := range running.GetItems() {
		elapsed := ""
		if t.GetStartedAt() != nil {
			elapsed = words.Duration(s.now().Sub(t.GetStartedAt().AsTime()))
		}
		rows = append(rows, []string{t.GetRun(), t.GetTask(), t.GetType(), t.GetNode(), s.formatTime(t.GetStartedAt()), elapsed})
	}
	if err := output.WriteTable(s.stdout, output.Fit(rows, s.dataWidth(), 2)); err != nil {
		return err
	}
	if running.GetNextPageToken() != "" {
		fmt.Fprintln(s.screen, "there are more: `switchyard tasks list --state running` lists them in pages")
	}
	return nil
}

// used returns an amount with what is in use in the place of what is free, or nil if the amount is unknown.
func used(a *v1.NodeAmount) *v1.NodeAmount {
	if a == nil {
		return nil
	}
	return &v1.NodeAmount{Free: max(0, a.GetTotal()-a.GetFree()), Total: a.GetTotal()}
}

// writeTopJSON writes the nodes and the running tasks as one document.
func writeTopJSON(sys *system, nodes []*v1.Node, tasks []*v1.ListedTask) error {
	document := map[string][]json.RawMessage{"nodes": {}, "tasks": {}}
	add := func(list string, m proto.Message) error {
		text, err := output.CompactJSON(m)
		document[list] = append(document[list], text)
		return err
	}
	for _, n := range nodes {
		if err := add("nodes", n); err != nil {
			return err
		}
	}
	for _, t := range tasks {
		if err := add("tasks", t); err != nil {
			return err
		}
	}
	return output.WriteJSON(sys.stdout, document)
}
