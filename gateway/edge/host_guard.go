package edge

import (
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"switchyard/activities/httpguard"
)

// GuardHosts returns a handler that refuses requests from pages of other sites, in the protocol of the client, and
// passes all others to next. hosts are the accepted host names besides localhost, the machine's own name and IP
// addresses. onRefused is called for each refused request; it may be nil.
func GuardHosts(hosts []string, onRefused func(r *http.Request, err error), next http.Handler) http.Handler {
	return httpguard.Guard{Hosts: hosts, Refuse: func(w http.ResponseWriter, r *http.Request, message string) {
		err := connect.NewError(connect.CodePermissionDenied, errors.New(message))
		if onRefused != nil {
			onRefused(r, err)
		}
		WriteError(w, r, err)
	}}.Protect(next)
}
