package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

// neverExpires is the word for a token that does not expire.
const neverExpires = "never"

func newTokensCreate(sys *system) *cobra.Command {
	req := &v1.CreateTokenRequest{}
	role := &output.Choice{Allowed: v1.Roles()}
	var expires string
	cmd := &cobra.Command{
		Use:   "create --name NAME --role ROLE",
		Short: "Create a token, which is shown once",
		Long: `Creates a token and prints it, and nothing else, on standard output. It cannot be
shown again: the gateway keeps its digest only.

A token of the role node is bound to the node of one name: --node.`,
		Args: arguments(0, 0, ""),
	}
	cmd.Flags().StringVar(&req.Name, "name", "", "who gets it; the runs that are submitted with it belong to this name (default the node)")
	cmd.Flags().Var(role, "role", "what it allows: viewer, user, operator, admin or node")
	cmd.Flags().StringVar(&req.Node, "node", "", "name of the node that a token of the role node is for")
	cmd.Flags().StringVar(&expires, "expires", "", "how long it is valid, such as 12h or 30d, or never (default 90d, or never for a node)")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		if role.Value == "" {
			return exit.Usagef("--role is missing: viewer, user, operator, admin or node")
		}
		req.Role = role.Value
		if req.Name == "" {
			req.Name = req.Node
		}
		if req.Name == "" {
			return exit.Usagef("--name is missing: who gets the token?")
		}
		switch lifetime, err := parseLifetime(expires); {
		case err != nil:
			return err
		case expires == neverExpires:
			req.NeverExpires = true
		case lifetime > 0:
			req.ExpiresIn = durationpb.New(lifetime)
		}
		res, err := client.Call(ctx, a, a.Auth.CreateToken, req)
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res)
		}
		end := "never expires"
		if at := res.GetToken().GetExpiresAt(); at != nil {
			end = "expires " + sys.formatTime(at)
		}
		fmt.Fprintf(sys.screen, "token %s of %s, role %s, %s; it is shown once:\n", res.GetToken().GetId(), res.GetToken().GetName(), res.GetToken().GetRole(), end)
		_, err = fmt.Fprintln(sys.stdout, res.GetSecret())
		return err
	})
	return cmd
}

// parseLifetime parses a Go duration or a number of days. It returns 0 for "" and for never.
func parseLifetime(text string) (time.Duration, error) {
	if text == "" || text == neverExpires {
		return 0, nil
	}
	bad := exit.Usagef("--expires %q: it must be a time such as 12h or 30d, or never", text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > 3650 {
			return 0, bad
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		return 0, bad
	}
	return d, nil
}
