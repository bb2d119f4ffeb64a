package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/credentials"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

func newLogin(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in to a gateway by saving a token for it",
		Long: `Saves a token for a gateway in ~/.config/switchyard/credentials.json; later commands send
it to that gateway. Of several gateways, each gets it. The token is read from --token-file,
from SWITCHYARD_TOKEN, or from a prompt or standard input.`,
		Args: arguments(0, 0, ""),
	}
	clientFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		list, err := sys.parseGateways(stringFlag(cmd, gatewayFlagName))
		if err != nil {
			return err
		}
		token, err := sys.newToken(cmd)
		if err != nil {
			return err
		}
		files, err := clientTLS(cmd)
		if err != nil {
			return err
		}
		a := client.New(list, client.Options{Token: token, TLS: files})
		defer a.Close()
		who, err := client.Call(cmd.Context(), a, a.Auth.WhoAmI, &v1.WhoAmIRequest{})
		if err != nil {
			return err
		}
		if who.GetKind() == auth.KindNone {
			return exit.Usagef("the gateway at %s requires no token; it was started without --auth", a.URL())
		}
		for _, gateway := range list.URLs() {
			if err := credentials.Save(credentials.Path(sys.getenv), gateway, token); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(sys.screen, "logged in to %s as %s\n", list, whoText(sys, who))
		return err
	}
	return cmd
}

// newToken returns the token to log in with.
func (s *system) newToken(cmd *cobra.Command) (string, error) {
	if path := stringFlag(cmd, tokenFileFlagName); path != "" {
		return credentials.ReadToken(path)
	}
	if token := strings.TrimSpace(s.getenv(tokenVariable)); token != "" {
		return token, nil
	}
	text, err := s.readSecret(cmd.Context(), "token: ")
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", exit.Usagef("standard input contains no token")
	}
	return token, nil
}

func newLogout(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logout",
		Short: "Remove the saved token for a gateway; the token stays valid",
		Args:  arguments(0, 0, ""),
	}
	clientFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		list, err := sys.parseGateways(stringFlag(cmd, gatewayFlagName))
		if err != nil {
			return err
		}
		path, isLoggedIn := credentials.Path(sys.getenv), false
		for _, gateway := range list.URLs() {
			token, err := credentials.Load(path, gateway)
			if err != nil {
				return err
			}
			if token == "" {
				continue
			}
			isLoggedIn = true
			if err := credentials.Save(path, gateway, ""); err != nil {
				return err
			}
		}
		if !isLoggedIn {
			return exit.Usagef("you are not logged in to %s", list)
		}
		_, err = fmt.Fprintf(sys.screen, "the token for %s is removed but still valid; `switchyard tokens revoke` revokes it\n", list)
		return err
	}
	return cmd
}

func newWhoami(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show your name and role on a gateway",
		Args:  arguments(0, 0, ""),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		who, err := client.Call(ctx, a, a.Auth.WhoAmI, &v1.WhoAmIRequest{})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, who)
		}
		_, err = fmt.Fprintln(sys.stdout, whoText(sys, who))
		return err
	})
	return cmd
}

// whoText describes a caller in one line.
func whoText(sys *system, who *v1.WhoAmIResponse) string {
	name := who.GetName()
	if name == "" {
		name = "a caller without a name"
	}
	text := fmt.Sprintf("%s, role %s", name, who.GetRole())
	if who.GetNode() != "" {
		text += ", node " + who.GetNode()
	}
	if who.GetExpiresAt() != nil {
		text += ", until " + sys.formatTime(who.GetExpiresAt())
	}
	return text
}
