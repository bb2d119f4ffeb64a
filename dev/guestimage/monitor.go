package guestimage

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"
)

// monitor is a connection to the QMP socket of a guest.
type monitor struct {
	conn    net.Conn
	decoder *json.Decoder
}

// openMonitor waits for the socket of a guest, connects to it, and negotiates its capabilities.
func openMonitor(socket string, exited <-chan struct{}) (*monitor, error) {
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			m := &monitor{conn, json.NewDecoder(conn)}
			_, err = m.execute("qmp_capabilities", nil)
			return m, err
		}
		select {
		case <-exited:
			return nil, errors.New("the guest has not started")
		case <-time.After(pollEvery):
		}
	}
}

func (m *monitor) close() error { return m.conn.Close() }

// execute runs a command and returns its reply. It skips events.
func (m *monitor) execute(command string, arguments any) (json.RawMessage, error) {
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(m.conn).Encode(request); err != nil {
		return nil, err
	}
	for {
		var reply struct {
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Desc string `json:"desc"`
			} `json:"error"`
		}
		if err := m.decoder.Decode(&reply); err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		switch {
		case reply.Error != nil:
			return nil, fmt.Errorf("%s: %s", command, reply.Error.Desc)
		case reply.Return != nil:
			return reply.Return, nil
		}
	}
}

// forwardForm matches a forwarded port in the reply to "info usernet".
var forwardForm = regexp.MustCompile(`TCP\[HOST_FORWARD\]\s+\S+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+22\b`)

// sshPort returns the local port that QEMU has chosen for the forwarding.
func (m *monitor) sshPort() (int, error) {
	answer, err := m.execute("human-monitor-command", map[string]string{"command-line": "info usernet"})
	if err != nil {
		return 0, err
	}
	var text string
	if err := json.Unmarshal(answer, &text); err != nil {
		return 0, err
	}
	found := forwardForm.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("QEMU forwards no port:\n%s", text)
	}
	return strconv.Atoi(found[1])
}
