package cli

import (
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/stack"
	v1 "switchyard/proto/switchyard/v1"
)

// Kinds of authentication.
const (
	authNone   = "none"
	authTokens = "tokens"
	// approveNone is the value of --approve-runs-of with which no run waits.
	approveNone = "none"
)

// authFlags are how callers of a gateway log in.
type authFlags struct {
	kind           output.Choice
	adminTokenFile string
	approveRunsOf  output.Choice
}

func (a *authFlags) add(f *pflag.FlagSet) {
	a.kind = output.Choice{Value: authNone, Allowed: []string{authNone, authTokens}}
	f.Var(&a.kind, "auth", "how callers log in: none, on a loopback address only, or tokens")
	a.approveRunsOf = output.Choice{Allowed: []string{v1.RoleUser, approveNone}, Value: approveNone}
	f.Var(&a.approveRunsOf, "approve-runs-of", "whose runs wait for the approval of an operator: user, or none")
	f.StringVar(&a.adminTokenFile, "admin-token-file", "", "file for the first token of an admin, which the first start with --auth tokens makes (default beside the store)")
}

// into checks the flags and sets a stack to them, whose store is known.
func (a *authFlags) into(cfg *stack.Config, getenv func(string) string) error {
	if a.kind.Value == authNone {
		if a.adminTokenFile != "" {
			return exit.Usagef("--admin-token-file %s: there is no token without --auth tokens", a.adminTokenFile)
		}
		if a.approveRunsOf.Value != approveNone {
			return exit.Usagef("--approve-runs-of %s: no caller has a role without --auth tokens", a.approveRunsOf.Value)
		}
		if !isLoopback(cfg.Gateway) {
			return exit.Usagef("%s %s is reached from other machines, and whoever reaches it runs commands on every node: add --auth tokens, or listen on 127.0.0.1", cfg.GatewayFlag, cfg.Gateway)
		}
		return nil
	}
	cfg.Auth = stack.AuthConfig{Tokens: true, AdminTokenFile: a.adminTokenFile, ApproveUserRuns: a.approveRunsOf.Value == v1.RoleUser}
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
