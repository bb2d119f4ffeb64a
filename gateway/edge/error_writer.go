package edge

import (
	"net/http"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
)

// errorWriter writes errors to clients of Connect and gRPC. A POST of JSON that does not name Connect's version is one of
// REST, which it does not support.
var errorWriter = connect.NewErrorWriter(connect.WithRequireConnectProtocolHeader())

// WriteError answers a request that reaches no handler with an error, in the protocol that its client speaks.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	if !errorWriter.IsSupported(r) {
		rpcerror.WriteJSON(w, 0, err)
		return
	}
	// An error means that the caller has gone.
	_ = errorWriter.Write(w, r, err)
}
