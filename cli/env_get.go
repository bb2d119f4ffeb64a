package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newEnvGet(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show an environment and the progress of its next version",
		Args:  arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		e, err := getEnvironment(ctx, a, args[0])
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, e)
		}
		return output.WriteTable(sys.stdout, sys.environmentRows(e))
	})
	return cmd
}

func getEnvironment(ctx context.Context, a *client.Client, name string) (*v1.Environment, error) {
	res, err := client.Call(ctx, a, a.Environments.GetEnvironment, &v1.GetEnvironmentRequest{Name: name})
	return res.GetEnvironment(), err
}

// environmentRows returns the rows that people see for an environment, without empty ones.
func (s *system) environmentRows(e *v1.Environment) [][]string {
	var rows [][]string
	for _, row := range [][]string{
		{"name", e.GetName()}, {"state", e.GetState()}, {"note", environmentNote(e)}, {"version", strconv.Itoa(int(e.GetVersion()))}, {"kind", e.GetKind()},
		{"size", environmentSize(e)}, {"source", environmentSource(e)}, {"on node", e.GetNode()}, {"by", e.GetCreatedBy()},
		{"created", s.formatTime(e.GetCreatedAt())}, {"ready", s.formatTime(e.GetReadyAt())}, {"image id", e.GetImageId()}, {"SHA-256", e.GetDigest()},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	return rows
}
