package cli

import (
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/pflag"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/stack"
	"switchyard/gateway/oidc"
	v1 "switchyard/proto/switchyard/v1"
)

// The kinds of authentication.
const (
	authNone   = "none"
	authTokens = "tokens"
	// approveNone is the value of --approve-runs-of that makes no run wait for approval.
	approveNone = "none"
)

// authFlags holds the flags that set how callers of a gateway log in.
type authFlags struct {
	kind           output.Choice
	adminTokenFile string
	approveRunsOf  output.Choice
	fourEyes       bool
	issuer         oidc.Config
}

func (a *authFlags) add(f *pflag.FlagSet) {
	a.kind = output.Choice{Value: authNone, Allowed: []string{authNone, authTokens}}
	f.Var(&a.kind, "auth", "how callers log in: none (on a loopback address only) or tokens")
	f.StringVar(&a.issuer.Issuer, "oidc-issuer", "", "URL of an OpenID Connect issuer whose tokens are also accepted")
	f.StringVar(&a.issuer.Audience, "oidc-audience", "", "audience that the issuer's tokens must have, such as the client id of this gateway")
	f.StringVar(&a.issuer.RolesClaim, "oidc-roles-claim", oidc.DefaultRolesClaim, "claim with the roles viewer, user, operator or admin; dots separate nested fields, as in realm_access.roles")
	f.StringVar(&a.issuer.NameClaim, "oidc-name-claim", oidc.DefaultNameClaim, "claim with the user's name, which owns runs; it must be unique and never reassigned")
	a.approveRunsOf = output.Choice{Allowed: []string{v1.RoleUser, approveNone}, Value: approveNone}
	f.Var(&a.approveRunsOf, "approve-runs-of", "role whose runs wait for an operator's approval: user or none")
	f.BoolVar(&a.fourEyes, "four-eyes", false, "refuse decisions about tasks of type approval by who submitted the run")
	f.StringVar(&a.adminTokenFile, "admin-token-file", "", "file for the first admin token, created on the first start with --auth tokens (default beside the store)")
}

// into checks the flags and applies them to a stack. The file of the admin token is set by [authFlags.tokenFileInto].
func (a *authFlags) into(cfg *stack.Config) error {
	if a.kind.Value == authNone {
		if a.adminTokenFile != "" {
			return exit.Usagef("--admin-token-file %s: no token is created without --auth tokens", a.adminTokenFile)
		}
		if a.issuer.Issuer != "" {
			return exit.Usagef("--oidc-issuer %s: callers do not log in without --auth tokens", a.issuer.Issuer)
		}
		if a.approveRunsOf.Value != approveNone {
			return exit.Usagef("--approve-runs-of %s: callers have no role without --auth tokens", a.approveRunsOf.Value)
		}
		if a.fourEyes {
			return exit.Usagef("--four-eyes: the names of callers prove nothing without --auth tokens")
		}
		if !isLoopback(cfg.Gateway) {
			return exit.Usagef("%s %s is reachable from other machines, and anyone who reaches it can run commands on every node: add --auth tokens, or listen on 127.0.0.1", cfg.GatewayFlag, cfg.Gateway)
		}
		return nil
	}
	cfg.Auth = stack.AuthConfig{Tokens: true, AdminTokenFile: a.adminTokenFile, ApproveUserRuns: a.approveRunsOf.Value == v1.RoleUser, FourEyes: a.fourEyes}
	if err := a.checkIssuer(); err != nil {
		return err
	}
	if a.issuer.Issuer != "" {
		cfg.Auth.OIDC = &a.issuer
	}
	return nil
}

// tokenFileInto sets the file of the admin token of a stack whose store is already set.
func (a *authFlags) tokenFileInto(cfg *stack.Config, getenv func(string) string) (err error) {
	if cfg.Auth.Tokens && cfg.Auth.AdminTokenFile == "" {
		cfg.Auth.AdminTokenFile, err = besideStore(cfg.Store, ".admin-token", getenv)
	}
	return err
}

// checkIssuer returns an error if the issuer flags are incomplete.
func (a *authFlags) checkIssuer() error {
	switch u, err := url.Parse(a.issuer.Issuer); {
	case a.issuer.Issuer == "" && a.issuer.Audience == "":
		return nil
	case a.issuer.Issuer == "":
		return exit.Usagef("--oidc-issuer is missing: give the issuer's URL as in the iss claim of its tokens")
	case a.issuer.Audience == "":
		return exit.Usagef("--oidc-audience is missing: without it, tokens issued for other programs would be accepted")
	case err != nil || u.Host == "" || u.Scheme != "https" && !client.IsLoopback(u):
		return exit.Usagef("--oidc-issuer %s: it must be an https URL", a.issuer.Issuer)
	}
	return nil
}

// isLoopback reports whether a host:port address is reachable only from this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" || host == "localhost" {
		return true // listening on an invalid address fails later
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// adminTokenHint returns the line that says where the first admin token is stored, or "" if the stack created none.
func adminTokenHint(s *stack.Stack) string {
	file := s.AdminTokenFile()
	if file == "" {
		return ""
	}
	return fmt.Sprintf("Admin      the first token is in %s: switchyard login%s --token-file %s\n", file, gatewayHint(s.Gateway().URL()), output.ShellWord(file))
}
