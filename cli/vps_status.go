package cli

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newVpsStatus(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status RUN [TASK]",
		Short: "Show a machine and how to log in to it",
		Args:  arguments(1, 2, "RUN"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		req := &v1.GetVpsRequest{Id: args[0]}
		if len(args) > 1 {
			req.Task = args[1]
		}
		m, err := getVps(ctx, a, req)
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, m)
		}
		return output.WriteTable(sys.stdout, sys.vpsRows(m))
	})
	return cmd
}

// getVps returns a machine. If the gateway does not know its SSH host name, getVps uses the host of the gateway's URL.
func getVps(ctx context.Context, a *client.Client, req *v1.GetVpsRequest) (*v1.Vps, error) {
	res, err := client.Call(ctx, a, a.Vps.GetVps, req)
	if err != nil {
		return nil, err
	}
	m := res.GetVps()
	if u, err := url.Parse(a.URL()); err == nil && m.GetSshPort() != 0 && m.GetSshHost() == "" {
		m.SshHost = u.Hostname()
		m.SshCommand = strings.Replace(m.GetSshCommand(), "@GATEWAY", "@"+m.GetSshHost(), 1)
	}
	return m, nil
}

// vpsRows returns the rows that people see for a machine, without empty ones.
func (s *system) vpsRows(m *v1.Vps) [][]string {
	status := m.GetStatus()
	if note := cmp.Or(m.GetNotice(), m.GetError()); note != "" { // the error of a lost machine repeats its notice
		status += ": " + words.OneLine(note)
	}
	door := ""
	if m.GetSshPort() != 0 {
		door = net.JoinHostPort(m.GetSshHost(), strconv.Itoa(int(m.GetSshPort())))
	}
	var rows [][]string
	for _, row := range [][]string{
		{"run", m.GetId()}, {"task", m.GetTask()}, {"status", status}, {"node", m.GetNode()}, {"image", m.GetImage()}, {"environment", m.GetEnvironment()}, {"VM image", m.GetVmImage()}, {"backend", m.GetVpsBackend()},
		{"container", m.GetContainerName()}, {"disk", m.GetVmDiskSize()}, {"address", m.GetVmIp()}, {"idle time-out", m.GetIdleTimeout()}, {"owner", m.GetSubmittedBy()},
		{"created", s.formatTime(m.GetCreatedAt())}, {"started", s.formatTime(m.GetStartedAt())}, {"ended", s.formatTime(m.GetCompletedAt())},
		{"SSH", door}, {"log in", m.GetSshCommand()},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	return rows
}
