package cli

import (
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/stack"
)

// Kinds of authentication.
const (
	authNone   = "none"
	authTokens = "tokens"
)

// authFlags are how callers of a gateway log in.
type authFlags struct {
	kind           output.Choice
	adminTokenFile string
}

func (a *authFlags) add(f *pflag.FlagSet) {
	a.kind = output.Choice{Value: authNone, Allowed: []string{authNone, authTokens}}
	f.Var(&a.kind, "auth", "how callers log in: none, on a loopback address only, or tokens")
	f.StringVar(&a.adminTokenFile, "admin-token-file", "", "file for the first token of an admin, which the first start with --auth tokens makes (default beside the store)")
}

// into checks the flags and sets a stack to them, whose store is known.
func (a *authFlags) into(cfg *stack.Config, getenv func(string) string) error {
	if a.kind.Value == authNone {
		if a.adminTokenFile != "" {
			return exit.Usagef("--admin-token-file %s: there is no token without --auth tokens", a.adminTokenFile)
		}
		if !isLoopback(cfg.Gateway) {
			return exit.Usagef("%s %s is reached from other machines, and whoever reaches it runs commands on every node: add --auth tokens, or listen on 127.0.0.1", cfg.GatewayFlag, cfg.Gateway)
		}
		return nil
	}
	cfg.Auth = stack.AuthConfig{Tokens: true, AdminTokenFile: a.adminTokenFile}
	if a.adminTokenFile == "" {
		file, err := besideStore(cfg.Store, ".admin-token", getenv)
		if err != nil {
			return err
		}
		cfg.Auth.AdminTokenFile = file
	}
	return nil
}

// isLoopback reports whether only this machine reaches an address, host:port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" || host == "localhost" {
		return true // what is no address is refused when it is listened on
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// adminTokenHint says where the first token of an admin is, or is "" if the stack has made none.
func adminTokenHint(s *stack.Stack) string {
	file := s.AdminTokenFile()
	if file == "" {
		return ""
	}
	return fmt.Sprintf("Admin      %s has the first token: switchyard login%s --token-file %s\n", file, gatewayHint(s.Gateway().URL()), output.ShellWord(file))
}
