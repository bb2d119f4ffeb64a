package edge

import (
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"switchyard/activities/httpguard"
	"switchyard/gateway/rpcerror"
)

// GuardHosts returns a handler that keeps the pages of other sites away from next, and answers them in the protocol that
// they speak. Hosts are the names, besides localhost, the machine's own and IP addresses, that it answers to.
func GuardHosts(hosts []string, next http.Handler) http.Handler {
	errorWriter := newErrorWriter()
	return httpguard.Guard{Hosts: hosts, Refuse: func(w http.ResponseWriter, r *http.Request, message string) {
		if !errorWriter.IsSupported(r) {
			rpcerror.WriteJSON(w, 0, connect.NewError(connect.CodePermissionDenied, errors.New(message)))
			return
		}
		// An error means that the caller has gone.
		_ = errorWriter.Write(w, r, connect.NewError(connect.CodePermissionDenied, errors.New(message)))
	}}.Protect(next)
}
