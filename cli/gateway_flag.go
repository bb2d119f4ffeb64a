package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/activities/gatewayclient"
	"switchyard/cli/client"
	"switchyard/cli/config"
	"switchyard/cli/credentials"
	"switchyard/cli/tlsfiles"
)

const (
	gatewayFlagName   = "gateway"
	tokenFileFlagName = "token-file"
	// Files that a client needs for a gateway with an https URL.
	caFlagName, clientCertFlagName, clientKeyFlagName = "ca", "client-cert", "client-key"
	// tokenVariable holds the token. There is no flag for it because every user of a machine sees the flags of a
	// process.
	tokenVariable = "SWITCHYARD_TOKEN"
)

// gatewayFlag adds --gateway and the flags for logging in to it.
func gatewayFlag(cmd *cobra.Command, usage string) *string {
	cmd.Flags().String(tokenFileFlagName, "", "file with the token for the gateway, which must be private (default $"+tokenVariable+", else the token of switchyard login)")
	cmd.Flags().String(caFlagName, "", "CA certificates of an https gateway, in PEM (default the system's)")
	cmd.Flags().String(clientCertFlagName, "", "client certificate for the gateway, in PEM, if it requires one")
	cmd.Flags().String(clientKeyFlagName, "", "key of --client-cert, in PEM")
	text := new(string)
	cmd.Flags().Var(&gatewaysValue{text: text}, gatewayFlagName, usage)
	return text
}

// clientFlag adds --gateway to a command that always needs a gateway.
func clientFlag(cmd *cobra.Command) *string {
	return gatewayFlag(cmd, "URL of the gateway; several URLs, or several of these flags, name gateways of one fleet, of which the next one is used while one does not answer (default "+client.DefaultURL+")")
}

// openClient returns a client of the gateways that the flags of a command name. The caller must close it.
func (s *system) openClient(cmd *cobra.Command) (*client.Client, error) {
	return s.openClientAt(cmd, stringFlag(cmd, gatewayFlagName))
}

// openClientAt returns a client of the gateways at addresses, with the token that the flags of a command name.
func (s *system) openClientAt(cmd *cobra.Command, addresses string) (*client.Client, error) {
	list, err := s.parseGateways(addresses)
	if err != nil {
		return nil, err
	}
	options, err := s.clientOptions(cmd, list)
	if err != nil {
		return nil, err
	}
	return client.New(list, options), nil
}

// parseGateways returns the gateways at addresses, which come from --gateway if they are wrong.
func (s *system) parseGateways(addresses string) (gatewayclient.List, error) {
	return client.ParseGateways(cmp.Or(s.origins[gatewayFlagName], "--"+gatewayFlagName), addresses)
}

// clientOptions returns how the flags of a command say that the gateways of a list are reached.
func (s *system) clientOptions(cmd *cobra.Command, list gatewayclient.List) (client.Options, error) {
	token, err := s.token(cmd, list)
	if err != nil {
		return client.Options{}, err
	}
	if i := slices.IndexFunc(list, isOpen); token != "" && i >= 0 {
		fmt.Fprintf(s.screen, "the token is sent to %s unencrypted; use https on a shared network\n", list[i])
	}
	files, err := clientTLS(cmd)
	return client.Options{Token: token, TLS: files}, err
}

// isOpen reports whether others can read what is sent to a gateway.
func isOpen(gateway *url.URL) bool { return gateway.Scheme == "http" && !client.IsLoopback(gateway) }

// clientTLS returns the TLS configuration that the flags of a command set for a gateway with an https URL, or nil.
func clientTLS(cmd *cobra.Command) (*tls.Config, error) {
	return tlsfiles.Client{
		CA: stringFlag(cmd, caFlagName), Cert: stringFlag(cmd, clientCertFlagName), Key: stringFlag(cmd, clientKeyFlagName),
	}.Config()
}

// token returns the token for the gateways of a list. Without a token for any of them it returns "". A login to one of them counts for all.
func (s *system) token(cmd *cobra.Command, list gatewayclient.List) (string, error) {
	path := stringFlag(cmd, tokenFileFlagName)
	if path != "" && !s.isFromFile(tokenFileFlagName) {
		return credentials.ReadToken(path)
	}
	if token := strings.TrimSpace(s.getenv(tokenVariable)); token != "" {
		return token, nil
	}
	// A token file named in the settings file belongs only to the gateway named there.
	if path != "" && s.isFromFile(gatewayFlagName) {
		return credentials.ReadToken(path)
	}
	for _, gateway := range list.URLs() {
		if token, err := credentials.Load(credentials.Path(s.getenv), gateway); token != "" || err != nil {
			return token, err
		}
	}
	return "", nil
}

// isFromFile reports whether the value of a flag comes from the settings file.
func (s *system) isFromFile(flag string) bool {
	origin := s.origins[flag]
	return origin != "" && !strings.HasPrefix(origin, "--") && origin != config.Variable(flag)
}

// stringFlag returns the value of a flag, or "" if the command does not have it.
func stringFlag(cmd *cobra.Command, name string) string {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// onGateway returns the run function of a command that calls do with a client of the gateway named by its flags.
func onGateway(sys *system, do func(context.Context, *client.Client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a, err := sys.openClient(cmd)
		if err != nil {
			return err
		}
		defer a.Close()
		return do(cmd.Context(), a, args)
	}
}
