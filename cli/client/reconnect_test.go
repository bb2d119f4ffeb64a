package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"switchyard/activities/gatewayclient"
	"switchyard/cli/exit"
)

func TestIsAway(t *testing.T) {
	t.Parallel()
	broken := func(cause error) error {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("protocol error: incomplete envelope: %w", cause))
	}
	for name, test := range map[string]struct {
		err  error
		away bool
	}{
		"does not answer":      {connect.NewError(connect.CodeUnavailable, errors.New("connection refused")), true},
		"cut in a message":     {broken(io.ErrUnexpectedEOF), true},
		"hangs in a message":   {broken(errors.New("http2: client connection lost")), true},
		"reset in a message":   {broken(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), true},
		"a message too broken": {broken(errors.New("invalid prefix")), false},
		"refused":              {connect.NewError(connect.CodeNotFound, errors.New("no run a-1")), false},
	} {
		if got := IsAway(test.err); got != test.away {
			t.Errorf("%s: %v, want %v", name, got, test.away)
		}
	}
}

// TestFailureOfAGatewayThatWasKilled covers connections that end during a response, and connections that cannot be
// opened.
func TestFailureOfAGatewayThatWasKilled(t *testing.T) {
	t.Parallel()
	list, err := ParseGateways("test", "http://yard:7280")
	if err != nil {
		t.Fatal(err)
	}
	a := New(list, Options{})
	cut := func(code connect.Code, cause error) error {
		return connect.NewError(code, fmt.Errorf("protocol error: incomplete envelope: %w", cause))
	}
	const away, unreachable = "lost the connection to the gateway at http://yard:7280 while it answered", "the gateway at http://yard:7280 cannot be reached: "
	for _, test := range []struct {
		err  error
		want string
	}{
		{cut(connect.CodeInternal, io.ErrUnexpectedEOF), away},
		{cut(connect.CodeInvalidArgument, io.ErrUnexpectedEOF), away},
		{cut(connect.CodeUnavailable, io.EOF), away},
		{cut(connect.CodeInternal, &net.OpError{Op: "read", Err: syscall.ECONNRESET}), away},
		{cut(connect.CodeUnavailable, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), unreachable},
		{cut(connect.CodeUnavailable, &gatewayclient.UnreachableError{Reasons: []gatewayclient.Reason{
			{Gateway: "http://a:1", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, {Gateway: "http://b:1", Err: io.EOF},
		}}), "lost the connection to the gateway at http://b:1 while it answered"},
		{cut(connect.CodeUnavailable, &gatewayclient.UnreachableError{Reasons: []gatewayclient.Reason{
			{Gateway: "http://a:1", Err: io.EOF}, {Gateway: "http://b:1", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
		}}), "none of 2 gateways can be used: http://a:1: EOF; http://b:1: dial"},
	} {
		got, ok := errors.AsType[*exit.Error](a.Failure(test.err))
		if !ok || got.Code != exit.CodeSystem || !strings.HasPrefix(got.Error(), test.want) || got.Hint == "" {
			t.Errorf("%v: %+v", test.err, got)
		}
	}
}
