package runstreams

import (
	"errors"

	"connectrpc.com/connect"
)

// shutdown is closed when the gateway shuts down.
type shutdown <-chan struct{}

// errStopping returns the error that ends the streams of a gateway that is shutting down.
func errStopping() error {
	return connect.NewError(connect.CodeUnavailable, errors.New("the gateway is shutting down"))
}

// streamError returns the error of a stream that ended with err: Unavailable if the gateway is shutting down.
func (s shutdown) streamError(err error) error {
	select {
	case <-s:
		return errStopping()
	default:
		return err
	}
}
