package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"connectrpc.com/connect"
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
		"reset in a message":   {broken(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), true},
		"a message too broken": {broken(errors.New("invalid prefix")), false},
		"refused":              {connect.NewError(connect.CodeNotFound, errors.New("no run a-1")), false},
	} {
		if got := IsAway(test.err); got != test.away {
			t.Errorf("%s: %v, want %v", name, got, test.away)
		}
	}
}
