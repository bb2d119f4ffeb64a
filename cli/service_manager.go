package cli

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"switchyard/cli/stack"
)

const (
	// notifySocketVariable names the socket on which systemd receives the state of a service of Type=notify.
	notifySocketVariable = "NOTIFY_SOCKET"
	// stopMargin is how long a stop may take in addition to the drain of the nodes.
	stopMargin = 30 * time.Second
)

// stopping returns the message that a service stops, and how long systemd has to wait before it kills the service.
func stopping(cfg stack.Config) string {
	wait := stopMargin
	for _, node := range cfg.Nodes {
		wait = max(wait, node.DrainTimeout+stopMargin)
	}
	return fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d", wait.Microseconds())
}

// notifyServiceManager sends a state of this process to the systemd that started it, if any; see sd_notify(3). A failure
// is only logged.
func notifyServiceManager(getenv func(string) string, log *slog.Logger, state string) {
	socket := getenv(notifySocketVariable)
	if socket == "" {
		return
	}
	if err := sendDatagram(socket, state); err != nil {
		log.Warn("the service manager was not notified", "socket", socket, "error", err)
	}
}

// sendDatagram sends a text to a Unix socket. A name that begins with @ is in the abstract namespace.
func sendDatagram(socket, text string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = strings.NewReader(text).WriteTo(conn)
	return err
}
