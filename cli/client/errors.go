package client

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"switchyard/activities/gatewayclient"
	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// Failure converts the error of a call to an error with an exit code.
func (a *Client) Failure(err error) error {
	refused, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return fmt.Errorf("gateway %s: %w", a.URL(), err)
	}
	gateway := a.gatewayOf(err)
	cut := isCut(err)
	if none, ok := errors.AsType[*gatewayclient.UnreachableError](err); ok && len(none.Reasons) > 1 && !cut {
		return &exit.Error{Code: exit.CodeSystem, Err: none, Hint: cmp.Or(a.tlsHint(err), unreachableHint)}
	}
	if hint := a.tlsHint(err); hint != "" && !connect.IsWireError(err) {
		return &exit.Error{Code: exit.CodeSystem, Err: fmt.Errorf("the gateway at %s cannot be reached: %s", gateway, refused.Message()), Hint: hint}
	}
	if cut || strings.Contains(refused.Message(), "client conn could not be established") {
		if hint := a.cutHint(gateway); hint != "" {
			return &exit.Error{Code: exit.CodeSystem, Err: fmt.Errorf("the gateway at %s has refused the connection", gateway), Hint: hint}
		}
	}
	if cut {
		return goneAway(gateway, "while it answered")
	}
	said := errors.New(refused.Message())
	switch code := refused.Code(); {
	case code == connect.CodeInvalidArgument:
		if problems := problemsOf(refused); problems != nil {
			return &exit.Error{Code: exit.CodeUsage, Err: problems}
		}
		return &exit.Error{Code: exit.CodeUsage, Err: said}
	case code == connect.CodeNotFound:
		unknown := &exit.Error{Code: exit.CodeUsage, Err: said}
		switch missingType(refused) {
		case "run":
			unknown.Hint = "`switchyard runs list` lists the runs"
		case "node":
			unknown.Hint = "`switchyard nodes list` lists the nodes"
		case "workflow":
			unknown.Hint = "`switchyard workflows list` lists the stored definitions"
		case "secret":
			unknown.Hint = "`switchyard secrets list` lists the secrets"
		case "environment":
			unknown.Hint = "`switchyard env list` lists the environments"
		}
		return unknown
	case code == connect.CodeUnauthenticated:
		return &exit.Error{Code: exit.CodeNotAllowed, Err: fmt.Errorf("the gateway at %s requires a login: %w", gateway, said)}
	case code == connect.CodePermissionDenied:
		return &exit.Error{Code: exit.CodeNotAllowed, Err: said}
	case code == connect.CodeAborted, code == connect.CodeAlreadyExists:
		return &exit.Error{Code: exit.CodeNotDone, Err: said}
	case code == connect.CodeUnimplemented:
		return &exit.Error{Code: exit.CodeSystem, Err: fmt.Errorf("the server at %s is not a gateway of this version: %w", gateway, said)}
	case code == connect.CodeUnavailable && !connect.IsWireError(err):
		return a.unreachable(gateway, said)
	}
	return &exit.Error{Code: exit.CodeSystem, Err: fmt.Errorf("gateway %s: %w", gateway, said)}
}

// unreachable returns the error for a gateway that cannot be reached.
func (a *Client) unreachable(gateway string, cause error) error {
	return &exit.Error{
		Code: exit.CodeSystem, Err: fmt.Errorf("the gateway at %s cannot be reached: %w", gateway, cause), Hint: cmp.Or(a.tlsHint(cause), unreachableHint),
	}
}

// unreachableHint is the remedy for gateways that cannot be reached.
const unreachableHint = "start one with `switchyard dev`, or name another one with --gateway or SWITCHYARD_GATEWAY"

// gatewayOf returns the URL of the gateway that an error is about.
func (a *Client) gatewayOf(err error) string {
	if none, ok := errors.AsType[*gatewayclient.UnreachableError](err); ok {
		return none.Reasons[len(none.Reasons)-1].Gateway
	}
	return a.URL()
}

// goneAway returns the error of a command whose gateway became unreachable during the command.
func goneAway(gateway, how string) error {
	return &exit.Error{
		Code: exit.CodeSystem, Err: fmt.Errorf("lost the connection to the gateway at %s %s", gateway, how),
		Hint: "once it is back, repeat the command, or check with `switchyard runs list`; runs survive a restart of the gateway, or of `switchyard dev` with --db",
	}
}

// missingType returns the type of the missing resource, or "" if the error names none.
func missingType(refused *connect.Error) string {
	for _, detail := range refused.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		if about, ok := value.(*errdetails.ResourceInfo); ok {
			return about.GetResourceType()
		}
	}
	return ""
}

// problemsOf returns the problems of a definition that an error carries, or nil.
func problemsOf(refused *connect.Error) error {
	for _, detail := range refused.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		if failed, ok := value.(*v1.ValidationFailure); ok && len(failed.GetProblems()) > 0 {
			return source.Problems(failed.GetProblems())
		}
	}
	return nil
}
