package edge

import (
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"switchyard/activities/httpguard"
)

// GuardHosts returns a handler that keeps the pages of other sites away from next, and answers them in the protocol that
// they speak. Hosts are the names, besides localhost, the machine's own and IP addresses, that it answers to.
// OnRefused is called for each request that is refused; nil: nothing is.
func GuardHosts(hosts []string, onRefused func(r *http.Request, err error), next http.Handler) http.Handler {
	return httpguard.Guard{Hosts: hosts, Refuse: func(w http.ResponseWriter, r *http.Request, message string) {
		err := connect.NewError(connect.CodePermissionDenied, errors.New(message))
		if onRefused != nil {
			onRefused(r, err)
		}
		WriteError(w, r, err)
	}}.Protect(next)
}
