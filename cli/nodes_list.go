package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newNodesList(sys *system) *cobra.Command {
	state := &output.Choice{Allowed: v1.NodeStates()}
	cmd := listCommand[*v1.Node]{
		use: "list", short: "List the nodes by name",
		what: "nodes", limit: 1000, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.Node], error) {
			return client.Call(ctx, a, a.Nodes.ListNodes, &v1.ListNodesRequest{State: state.Value, PageSize: size, PageToken: token})
		},
		rows: func(nodes []*v1.Node) [][]string {
			rows := [][]string{{"NAME", "STATE", "RUNNING", "CORES", "MEMORY", "DISK", "GPUS", "BEAT", "LABELS", "NOTE"}}
			for _, n := range nodes {
				rows = append(rows, []string{
					n.GetName(), n.GetState(), fmt.Sprintf("%d/%d", n.GetRunning(), n.GetMaxParallel()),
					share(n.GetCores(), 1, ""), share(n.GetMemoryMb(), 1024, " GiB"), share(n.GetDiskGb(), 1, " GiB"), share(n.GetGpus(), 1, ""),
					sys.formatAge(n.GetLastBeatAt()), strings.Join(n.GetLabels(), ","), sys.nodeNote(n),
				})
			}
			return rows
		},
	}.command(sys)
	cmd.Flags().Var(state, "state", "only nodes in this state")
	return cmd
}

// share returns the free and the whole amount in the given unit, or "" if the amount is unknown. size is the value of
// one unit.
func share(a *v1.NodeAmount, size float64, unit string) string {
	if a == nil {
		return ""
	}
	figure := func(f float64) string {
		if f /= size; f < 10 {
			return strconv.FormatFloat(float64(int(f*10))/10, 'f', -1, 64) // rounded down, so that it never shows more than is free
		}
		return strconv.Itoa(int(f))
	}
	return figure(a.GetFree()) + "/" + figure(a.GetTotal()) + unit
}

// nodeNote returns one line about a node beyond its state.
func (s *system) nodeNote(n *v1.Node) string {
	var notes []string
	if n.GetReason() != "" {
		notes = append(notes, words.OneLine(n.GetReason()))
	}
	if until := n.GetRestartingUntil(); until != nil {
		notes = slices.Insert(notes, 0, "until "+s.formatTime(until))
	}
	if n.GetState() == v1.NodeDraining {
		switch {
		case n.GetDrained():
			notes = append(notes, "no tasks left")
		case n.GetDrainDeadline() != nil:
			notes = append(notes, "until "+s.formatTime(n.GetDrainDeadline()))
		}
	}
	if until := n.GetBenchedUntil(); until != nil && until.AsTime().After(s.now()) {
		notes = append(notes, "benched until "+s.formatTime(until))
	}
	for _, o := range n.GetNeighbors() {
		notes = append(notes, neighborText(o))
	}
	return strings.Join(notes, "; ")
}

// neighborText returns the resources of the machine that another node holds.
func neighborText(o *v1.NodeNeighbor) string {
	var held []string
	switch cores := o.GetCores(); {
	case cores == 1:
		held = append(held, "1 core")
	case cores > 0:
		held = append(held, strconv.FormatFloat(cores, 'f', -1, 64)+" cores")
	}
	if o.GetMemoryMb() > 0 {
		held = append(held, fmt.Sprintf("%.0f MiB", o.GetMemoryMb()))
	}
	for _, index := range o.GetGpus() {
		held = append(held, fmt.Sprintf("GPU %d", index))
	}
	return fmt.Sprintf("%s on the same machine holds %s", o.GetName(), strings.Join(held, ", "))
}
