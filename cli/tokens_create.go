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
		Short: "Create a token and show it once",
		Long: `Creates a token and prints only the token on standard output. It cannot be shown again,
because the gateway stores only its digest.

A token of the role node is bound to one node name (--node).`,
		Args: arguments(0, 0, ""),
	}
	cmd.Flags().StringVar(&req.Name, "name", "", "name of its owner, to whom runs submitted with it belong (default the node)")
	cmd.Flags().Var(role, "role", "role of the token: viewer, user, operator, admin or node")
	cmd.Flags().StringVar(&req.Node, "node", "", "name of the node, for a token of the role node")
	cmd.Flags().StringVar(&expires, "expires", "", "how long it is valid, such as 12h or 30d, or never (default 90d, or never for a node)")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		if role.Value == "" {
			return exit.Usagef("--role is missing: use viewer, user, operator, admin or node")
		}
		req.Role = role.Value
		if req.Name == "" {
			req.Name = req.Node
		}
		if req.Name == "" {
			return exit.Usagef("--name is missing: name the owner of the token")
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
