package edge

import "connectrpc.com/connect"

// newErrorWriter returns a writer for errors to clients of Connect and gRPC. A POST of JSON that does not name Connect's
// version is one of REST, which the writer does not support.
func newErrorWriter() *connect.ErrorWriter {
	return connect.NewErrorWriter(connect.WithRequireConnectProtocolHeader())
}
