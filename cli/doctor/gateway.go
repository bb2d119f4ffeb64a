package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

// errNoGateway is the error of checks that need the gateway. Why it does not answer is the finding of another check.
var errNoGateway = errors.New("the gateway cannot be reached")

func (e *examination) checkSettings(context.Context) Finding { return judgeSettings(e.StartError) }

func judgeSettings(err error) Finding {
	if err != nil {
		return failed(hintOf(err), "a start refuses them: %s", oneLine(err))
	}
	return ok("a start accepts the flags and settings")
}

// checkGateways asks each gateway. The first one that answers serves the later checks.
func (e *examination) checkGateways(ctx context.Context) []Finding {
	if len(e.Gateways) == 0 {
		return []Finding{judgeGateway("", client.Health{}, e.GatewayError)}
	}
	var found []Finding
	for _, gateway := range e.Gateways {
		health, err := gateway.Client.Health(ctx)
		if err == nil && len(e.answering) == 0 {
			e.gateway, e.skew = gateway.Client, &health.Skew
		}
		if err == nil {
			e.answering = append(e.answering, gateway)
		}
		found = append(found, judgeGateway(gateway.Client.URL(), health, err))
	}
	return found
}

func judgeGateway(url string, health client.Health, err error) Finding {
	switch {
	case err != nil:
		return failed(hintOf(err), "%v", err)
	case !health.Ready:
		return failed("see its log, and run `switchyard doctor gateway` on its machine", "the gateway at %s is not ready: %s", url, health.Word)
	}
	return ok("%s is ready", url)
}

// hintOf returns the remedy that an error of the client has, or "".
func hintOf(err error) string {
	if f, is := errors.AsType[*exit.Error](err); is {
		return f.Hint
	}
	return ""
}

func (e *examination) checkToken(ctx context.Context) Finding {
	if e.skew == nil {
		return skipped("%v", errNoGateway)
	}
	who, err := client.Call(ctx, e.gateway, e.gateway.Auth.WhoAmI, &v1.WhoAmIRequest{})
	e.version = who.GetVersion()
	return judgeToken(e.Role, e.Node, who, err, e.Now())
}

// tokenNotice is how long before the end of a token it is worth a warning.
const tokenNotice = 7 * 24 * time.Hour

func judgeToken(role, node string, who *v1.WhoAmIResponse, err error, now time.Time) Finding {
	expires := who.GetExpiresAt()
	left := expires.AsTime().Sub(now)
	renew := "an admin creates another one with `switchyard tokens create`"
	switch {
	case err != nil && role == RoleWorker && hintOf(err) == "":
		return failed(JoinHint(node), "%v", err)
	case err != nil:
		return failed(hintOf(err), "%v", err)
	case who.GetKind() == auth.KindNone:
		return ok("the gateway requires no token")
	}
	if role == RoleWorker {
		if err := CheckNode(who, node); err != nil {
			return failed(JoinHint(node), "%v", err)
		}
		renew = JoinHint(node)
	}
	if expires != nil && left < tokenNotice {
		return warning(renew, "the token of %s, role %s, expires at %s", who.GetName(), who.GetRole(), expires.AsTime().Format(time.DateTime))
	}
	return ok("the token is that of %s, role %s", who.GetName(), who.GetRole())
}

// CheckNode returns an error unless the token of a caller is that of a node.
func CheckNode(who *v1.WhoAmIResponse, node string) error {
	switch {
	case who.GetKind() == auth.KindNone:
		return nil
	case who.GetRole() != v1.RoleNode:
		return fmt.Errorf("the token belongs to %s, with the role %s; a worker needs a token of the role node", who.GetName(), who.GetRole())
	case who.GetNode() != node:
		return fmt.Errorf("the token belongs to node %s, but this worker is node %s", who.GetNode(), node)
	}
	return nil
}

// JoinHint says how the worker of a node gets its token.
func JoinHint(node string) string {
	return fmt.Sprintf("an admin creates one with `switchyard tokens create --role node --node %s`; give it to the worker in a file with --token-file, or in SWITCHYARD_TOKEN", node)
}
