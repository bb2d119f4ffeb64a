package guest

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
)

// loopbacks are the addresses of a loopback interface, in the order of attempts.
var loopbacks = []string{"127.0.0.1", "::1"}

// Dial connects to a TCP port of the machine's loopback interface. A Refusal means that nothing listens on the port, or
// that the sshd does not permit it.
func (g *Guest) Dial(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, refuse("%d is not a port: ports are from 1 to 65535", port)
	}
	ctx, done := g.attemptContext(ctx)
	defer done()
	var err error
	for _, host := range loopbacks {
		target := struct {
			Host       string
			Port       uint32
			OriginHost string
			OriginPort uint32
		}{host, uint32(port), "127.0.0.1", 0}
		var c *channel
		if c, err = g.network.open(ctx, "direct-tcpip", ssh.Marshal(target)); err == nil {
			return newStream(c, &net.TCPAddr{IP: net.ParseIP("127.0.0.1")}, &net.TCPAddr{IP: net.ParseIP(host), Port: port}), nil
		}
		if e, ok := errors.AsType[*ssh.OpenChannelError](err); !ok || e.Reason != ssh.ConnectionFailed {
			break
		}
	}
	e, ok := errors.AsType[*ssh.OpenChannelError](err)
	switch {
	case !ok:
		return nil, fmt.Errorf("connect to port %d of the machine: %w", port, err)
	case e.Reason == ssh.Prohibited:
		return nil, refuse("the sshd of the machine does not allow port forwarding; set AllowTcpForwarding to yes in its sshd_config")
	}
	return nil, refuse("nothing listens on port %d of the machine", port)
}
