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

// Guard refuses what a page of another site makes a browser send.
//
// A request with a foreign origin is refused unless it only reads. A request that
// arrives by loopback is refused, whatever its method, when it calls the server by
// a name that is not this machine's: the owner of that name can point it at
// loopback, and the browser then takes the server for the page's own. Programs are
// held to the same names, because a browser that reads sends nothing that a
// program would not.
type Guard struct {
	// Hosts are the names of the server besides localhost, the machine's own name
	// and IP addresses, such as the one that a reverse proxy on this machine passes on.
	Hosts []string
	// Everywhere has names count for connections from other machines, too.
	Everywhere bool
	// Refuse writes an answer with the status 403. Default: the message as plain text.
	Refuse func(w http.ResponseWriter, r *http.Request, message string)
}

// Protect returns a handler that lets only allowed requests through to next.
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

// ownNames returns the machine's own name, whole and without its domain.
func ownNames() []string {
	name, err := os.Hostname()
	if err != nil {
		return nil // its addresses remain
	}
	name = hostName(name)
	short, _, _ := strings.Cut(name, ".")
	return []string{name, short}
}

func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// hostName returns the name in a Host header in lower case and without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// isLocal reports whether this machine's owner alone decides where a name points. An
// address needs no decision, and every browser sends a name.
func isLocal(name string, names []string) bool {
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(names, name) {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
