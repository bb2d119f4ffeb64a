package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/gateway/mcp"
)

func newMCP(sys *system) *cobra.Command {
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the fleet to an agent over the Model Context Protocol",
		Long: `Serves the fleet to an agent program, which starts this command and speaks the Model
Context Protocol on its standard input and output. Most such programs are configured with
{"command": "switchyard", "args": ["mcp"]}.

The command starts without a gateway. While the gateway is unreachable, tool calls return
an error that names it, but validate_definition and the language guide still work. The
gateway itself serves the same tools over HTTP at /mcp.`,
		Args: arguments(0, 0, ""),
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "offer only tools that change nothing")
	clientFlag(cmd)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		server := mcp.New(mcp.Config{
			Version:  version(),
			Services: &mcp.Services{Runs: a.Runs, Tasks: a.Tasks, Workflows: a.Workflows, Nodes: a.Nodes},
			ReadOnly: readOnly,
			Failure:  func(err error) string { return failureText(a.Failure(err)) },
		})
		err := server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(sys.stdin), Writer: unclosed{sys.rawStdout}})
		if ctx.Err() != nil || errors.Is(err, io.EOF) {
			return nil // the agent program has left, or a signal has arrived
		}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return exit.Usagef("standard input is not in the Model Context Protocol (%w); this command is for agent programs to start", syntax)
		}
		return err
	})
	return cmd
}

// failureText returns an error with its hint.
func failureText(err error) string {
	if failure, ok := errors.AsType[*exit.Error](err); ok && failure.Hint != "" {
		return fmt.Sprintf("%v\n%s", failure.Err, failure.Hint)
	}
	return err.Error()
}

// unclosed is a writer that stays open.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }
