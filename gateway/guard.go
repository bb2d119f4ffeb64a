package gateway

import (
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"switchyard/activities/httpguard"
)

// protect keeps the pages of other sites away from the handler, and answers them
// in the protocol that they speak.
func (g *Gateway) protect(next http.Handler) http.Handler {
	errorWriter := connect.NewErrorWriter()
	return httpguard.Guard{Hosts: g.config.Hosts, Refuse: func(w http.ResponseWriter, r *http.Request, message string) {
		if !errorWriter.IsSupported(r) {
			http.Error(w, message, http.StatusForbidden)
			return
		}
		// An error means that the caller has gone.
		_ = errorWriter.Write(w, r, connect.NewError(connect.CodePermissionDenied, errors.New(message)))
	}}.Protect(next)
}
