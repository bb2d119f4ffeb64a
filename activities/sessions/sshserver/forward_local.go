package sshserver

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"
)

// localHosts are the host names under which clients reach a port of the attempt.
var localHosts = []string{"localhost", "127.0.0.1", "::1"}

// serveDirect connects a client to a port of the attempt (RFC 4254, section 7.2).
func (c *connection) serveDirect(ctx context.Context, offered ssh.NewChannel) {
	var m struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	switch err := ssh.Unmarshal(offered.ExtraData(), &m); {
	case err != nil:
		reject(offered, ssh.ConnectionFailed, "the request cannot be read")
		return
	case !slices.Contains(localHosts, m.Host):
		reject(offered, ssh.Prohibited, fmt.Sprintf("%.80q is not the task itself; only the task's own ports can be reached, as localhost", m.Host))
		return
	case m.Port < 1 || m.Port > 65535:
		reject(offered, ssh.ConnectionFailed, fmt.Sprintf("%d is not a port", m.Port))
		return
	}
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	far, err := c.config.Inside.Dial(dial, int(m.Port))
	cancel()
	if err != nil {
		reject(offered, ssh.ConnectionFailed, err.Error())
		return
	}
	channel, requests, err := offered.Accept()
	if err != nil {
		_ = far.Close()
		return // the connection has ended
	}
	relay(ctx, channel, requests, far)
}
