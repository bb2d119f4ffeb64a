package edge

import (
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"switchyard/activities/httpguard"
)

// GuardHosts returns a handler that keeps the pages of other sites away from next, and answers them in the protocol that
// they speak. Hosts are the names, besides localhost, the machine's own and IP addresses, that it answers to.
func GuardHosts(hosts []string, next http.Handler) http.Handler {
	return httpguard.Guard{Hosts: hosts, Refuse: func(w http.ResponseWriter, r *http.Request, message string) {
		WriteError(w, r, connect.NewError(connect.CodePermissionDenied, errors.New(message)))
	}}.Protect(next)
}
