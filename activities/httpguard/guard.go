package httpguard

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Guard refuses requests that a page of another site makes a browser send.
//
// A request with a foreign origin is refused unless it only reads. A request that arrives over
// loopback is refused, whatever its method, if its Host is a name that is not this machine's. The
// owner of such a name can point it at loopback, and the browser then treats the server as part of
// the page's site. The same rule applies to requests from programs, because a reading request of a
// browser looks like one of a program.
type Guard struct {
	// Hosts lists names of the server besides localhost, the machine's own name and IP addresses,
	// such as the name that a reverse proxy on this machine passes on.
	Hosts []string
	// Everywhere applies the check of names also to connections from other machines.
	Everywhere bool
	// Refuse writes a response with status 403. The default writes the message as plain text.
	Refuse func(w http.ResponseWriter, r *http.Request, message string)
}

// Protect returns a handler that passes only allowed requests to next.
func (g Guard) Protect(next http.Handler) http.Handler {
	if g.Refuse == nil {
		g.Refuse = func(w http.ResponseWriter, _ *http.Request, message string) {
			http.Error(w, message, http.StatusForbidden)
		}
	}
	names := ownNames()
	for _, host := range g.Hosts {
		names = append(names, hostName(host))
	}
	sameSite := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := hostName(r.Host); (g.Everywhere || onLoopback(r)) && !isLocal(name, names) {
			g.Refuse(w, r, fmt.Sprintf("this server is not known as %q; call it localhost, or name that host with --allowed-host when you start the server", name))
			return
		}
		if err := sameSite.Check(r); err != nil {
			g.Refuse(w, r, fmt.Sprintf("a page of another site sent this: %v", err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownNames returns the machine's host name, with and without its domain, or nil if it is unknown.
func ownNames() []string {
	name, err := os.Hostname()
	if err != nil {
		return nil // the machine's addresses still work
	}
	name = hostName(name)
	short, _, _ := strings.Cut(name, ".")
	return []string{name, short}
}

func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// hostName returns the name in a Host header in lower case, without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// isLocal reports whether only this machine's owner decides where a name points. An IP address is
// always local, because it cannot be pointed elsewhere; browsers that follow a foreign name send
// that name.
func isLocal(name string, names []string) bool {
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(names, name) {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
