package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

func newNodesList(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the nodes by name",
		Args:  arguments(0, 0, ""),
	}
	state := &choice{allowed: v1.NodeStates()}
	cmd.Flags().Var(state, "state", "only nodes in this state")
	gateway, list := clientFlag(cmd), listFlags(cmd, "nodes", 1000, 1000)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, _ []string) error {
		if err := list.check(); err != nil {
			return err
		}
		page, err := call(ctx, a, a.nodes.ListNodes, &v1.ListNodesRequest{State: state.value, PageSize: list.limit, PageToken: list.token})
		if err != nil {
			return err
		}
		items, err := messages(page.GetItems())
		if err != nil {
			return err
		}
		return writeList(sys, list, items, page.GetNextPageToken(), func(w io.Writer) error {
			rows := [][]string{{"NAME", "STATE", "RUNNING", "CORES", "MEMORY", "DISK", "GPUS", "BEAT", "LABELS", "NOTE"}}
			for _, n := range page.GetItems() {
				rows = append(rows, []string{
					n.GetName(), n.GetState(), fmt.Sprintf("%d/%d", n.GetRunning(), n.GetMaxParallel()),
					share(n.GetCores(), 1, ""), share(n.GetMemoryMb(), 1024, " GiB"), share(n.GetDiskGb(), 1, " GiB"), share(n.GetGpus(), 1, ""),
					sys.ago(n.GetLastBeatAt()), strings.Join(n.GetLabels(), ","), sys.nodeNote(n),
				})
			}
			return writeTable(w, rows)
		})
	})
	return cmd
}

// share is what is free of an amount and all of it, in units of so many; "" where
// it is not known.
func share(a *v1.NodeAmount, size float64, unit string) string {
	if a == nil {
		return ""
	}
	figure := func(f float64) string {
		if f /= size; f < 10 {
			return strconv.FormatFloat(float64(int(f*10))/10, 'f', -1, 64) // never more than there is
		}
		return strconv.Itoa(int(f))
	}
	return figure(a.GetFree()) + "/" + figure(a.GetTotal()) + unit
}

// nodeNote is what there is to say about a node beyond its state, in one line.
func (s *system) nodeNote(n *v1.Node) string {
	var notes []string
	if n.GetReason() != "" {
		notes = append(notes, tui.OneLine(n.GetReason()))
	}
	if n.GetState() == v1.NodeDraining {
		switch {
		case n.GetDrained():
			notes = append(notes, "nothing is left on it")
		case n.GetDrainDeadline() != nil:
			notes = append(notes, "until "+s.at(n.GetDrainDeadline()))
		}
	}
	if until := n.GetBenchedUntil(); until != nil && until.AsTime().After(s.now()) {
		notes = append(notes, "benched until "+s.at(until))
	}
	return strings.Join(notes, "; ")
}
