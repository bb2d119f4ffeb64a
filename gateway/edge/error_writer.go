package edge

import (
	"net/http"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
)

// errorWriter writes errors to Connect and gRPC clients. It treats a JSON POST without Connect's version header as REST,
// which it does not support.
var errorWriter = connect.NewErrorWriter(connect.WithRequireConnectProtocolHeader())

// WriteError responds to a request that reaches no handler with an error, in the protocol of the client.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	if !errorWriter.IsSupported(r) {
		rpcerror.WriteJSON(w, 0, err)
		return
	}
	// An error means that the caller has disconnected.
	_ = errorWriter.Write(w, r, err)
}
