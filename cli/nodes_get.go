package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newNodesGet(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show a node, its free resources and its running tasks",
		Args:  arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Nodes.GetNode, &v1.GetNodeRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetNode())
		}
		return sys.describeNode(sys.stdout, res.GetNode())
	})
	return cmd
}

// describeNode writes a node and its attempts for people.
func (s *system) describeNode(w io.Writer, n *v1.Node) error {
	state := n.GetState()
	if note := s.nodeNote(n); note != "" {
		state += ": " + note
	}
	snapshot := n.GetSnapshot()
	rows := [][]string{
		{"name", n.GetName()},
		{"state", state},
		{"since", s.formatTime(n.GetStateSince())},
		{"last heartbeat", s.formatAge(n.GetLastBeatAt())},
		{"registered", s.formatTime(n.GetRegisteredAt())},
		{"machine", n.GetMachine()},
		{"labels", strings.Join(n.GetLabels(), ", ")},
		{"capabilities", pairs(n.GetCapabilities())},
		{"executors", strings.Join(n.GetExecutors(), ", ")},
		{"tasks", fmt.Sprintf("%d of at most %d", n.GetRunning(), n.GetMaxParallel())},
		{"cores", fmt.Sprintf("%s free, %.0f%% in use, load %.1f", share(n.GetCores(), 1, ""), snapshot.GetCpu().GetUsagePercent(), snapshot.GetCpu().GetLoadAvg_1M())},
		{"memory", fmt.Sprintf("%s free", share(n.GetMemoryMb(), 1024, " GiB"))},
		{"disk", fmt.Sprintf("%s free, %.0f%% busy", share(n.GetDiskGb(), 1, " GiB"), snapshot.GetDisk().GetIoUtilPercent())},
		{"network", traffic(snapshot.GetNetwork())},
		{"GPUs", share(n.GetGpus(), 1, "") + " free"},
	}
	if n.GetSuspicions() > 0 {
		rows = append(rows, []string{"suspicions", fmt.Sprintf("%d dispatches were not picked up or not started, and have moved", n.GetSuspicions())})
	}
	rows = append(rows, words.Terms(snapshot.GetTerms(), n.GetSetTerms())...)
	for _, taskType := range slices.Sorted(maps.Keys(snapshot.GetWithheld())) {
		rows = append(rows, []string{"runs no " + taskType, snapshot.GetWithheld()[taskType]})
	}
	if url := snapshot.GetMetricsUrl(); url != "" {
		rows = append(rows, []string{"metrics", url})
	}
	for _, g := range snapshot.GetGpus() {
		rows = append(rows, []string{fmt.Sprintf("GPU %d", g.GetIndex()), fmt.Sprintf("%s, %.0f%% in use, %.0f of %.0f MiB", g.GetName(), g.GetUsagePercent(), g.GetMemoryUsedMb(), g.GetMemoryMb())})
	}
	if slices.Contains(n.GetExecutors(), v1.TypeContainer) {
		rows = append(rows, []string{"containers may", allowed(snapshot.GetContainers())})
	}
	if err := output.WriteTable(w, rows); err != nil {
		return err
	}
	running := snapshot.GetRunning()
	if len(running) == 0 || n.GetState() == v1.NodeOffline {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	rows = [][]string{{"RUN", "TASK", "CLAIM", "CORES", "MEMORY", "GPUS", "NUMA"}}
	for _, r := range running {
		gpus := make([]string, 0, len(r.GetGpus()))
		for _, g := range r.GetGpus() {
			gpus = append(gpus, strconv.Itoa(int(g))+words.GPUPart(r.GetGpuPart()))
		}
		numa := ""
		if r.NumaNode != nil {
			numa = strconv.Itoa(int(r.GetNumaNode()))
		}
		rows = append(rows, []string{
			r.GetRunId(), r.GetTask(), strconv.Itoa(int(r.GetClaim())), strconv.FormatFloat(r.GetCores(), 'f', -1, 64),
			fmt.Sprintf("%.0f MiB", r.GetMemoryMb()), strings.Join(gpus, ","), numa,
		})
	}
	return output.WriteTable(w, rows)
}

// traffic returns the throughput of a node's network, and the speed of the link if it is known.
func traffic(n *v1.NetworkSnapshot) string {
	if n.GetBandwidthMbps() == 0 {
		return fmt.Sprintf("%.0f Mbit/s, of a link of unknown speed", n.GetThroughputMbps())
	}
	return fmt.Sprintf("%.0f of %.0f Mbit/s", n.GetThroughputMbps(), n.GetBandwidthMbps())
}

// allowed lists what the containers of a node may do beyond the defaults.
func allowed(p *v1.ContainerPolicy) string {
	var all []string
	if p.GetPrivileged() {
		all = append(all, "be privileged")
	}
	if p.GetHostNetwork() {
		all = append(all, "use the host's network")
	}
	for _, m := range p.GetMounts() {
		text := "mount " + m.GetPath()
		if m.GetReadOnly() {
			text += " read-only"
		}
		all = append(all, text)
	}
	for _, name := range p.GetCapabilities() {
		all = append(all, "add "+name)
	}
	if len(all) == 0 {
		return "nothing special"
	}
	return strings.Join(all, ", ")
}

// pairs returns the entries of a map as key=value, sorted.
func pairs(m map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, key+"="+m[key])
	}
	return strings.Join(all, ", ")
}
