package workers

import (
	"net"
	"os"
)

// ownHost returns the address from which this machine reaches a server, "host:port", which other machines there can usually reach. It
// sends nothing. Without a route to the server it returns the name of the machine.
func ownHost(server string) string {
	if conn, err := net.Dial("udp", server); err == nil {
		defer conn.Close()
		if host, _, err := net.SplitHostPort(conn.LocalAddr().String()); err == nil {
			return host
		}
	}
	name, _ := os.Hostname()
	return name
}
