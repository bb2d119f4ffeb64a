package gateway

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// guardOrigin refuses what a page of another site makes a browser send: requests
// with a foreign origin, and requests that reach a loopback address under a name
// that is not local, because that name's owner could have pointed it there.
// Programs that are no browsers send neither header and are let through.
func guardOrigin(hosts []string, next http.Handler) http.Handler {
	local := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fromBrowser(r) && onLoopback(r) && !localHost(r.Host, hosts) {
			http.Error(w, "this gateway is not known as "+r.Host, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(local)
}

func fromBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

func localHost(host string, hosts []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		net.ParseIP(host) != nil || slices.Contains(hosts, host)
}
