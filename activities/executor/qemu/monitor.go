package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	"switchyard/activities/executor/qemu/qmp"
)

const (
	// monitorPatience bounds one command. QEMU answers at once unless its host is overloaded.
	monitorPatience = 15 * time.Second
	// connectPatience bounds one attempt to connect. QEMU does not answer while it serves another worker on the socket.
	connectPatience = 5 * time.Second
	// monitorAgain is the delay between two attempts to connect.
	monitorAgain = 100 * time.Millisecond
)

// Run states of QEMU that this package handles.
const (
	statePaused   = "paused"
	stateRunning  = "running"
	stateShutdown = "shutdown" // after a power-off that did not end QEMU
	stateIOError  = "io-error" // the disk could not be written
	// stateInternalError means that the machine cannot continue.
	stateInternalError = "internal-error"
)

// monitor is the connection to the QEMU of a machine. It reconnects as long as the machine runs. A worker that hangs
// and holds the first socket does not block the next worker, which takes the second one.
type monitor struct {
	folder folder

	mu sync.Mutex
	// client is nil while disconnected. changed is closed and replaced whenever client changes.
	client  *qmp.Client
	changed chan struct{}
}

func newMonitor(f folder) *monitor { return &monitor{folder: f, changed: make(chan struct{})} }

// connect connects to the first socket that no other client holds.
func (m *monitor) connect(ctx context.Context) (*qmp.Client, error) {
	var errs error
	for _, name := range []string{socketFile, socketFile2} {
		short, cancel := context.WithTimeout(ctx, connectPatience)
		c, err := qmp.Dial(short, m.folder.file(name))
		cancel()
		if err == nil {
			return c, nil
		}
		errs = errors.Join(errs, err)
	}
	return nil, errs
}

// maintainConnection maintains a connection until ctx or the machine ends, and passes events on one at a time. It calls connected
// after each new connection.
func (m *monitor) maintainConnection(ctx context.Context, connected func(), event func(qmp.Event)) {
	for ctx.Err() == nil {
		client, err := m.connect(ctx)
		if err != nil {
			if !m.folder.isRunning() {
				return
			}
			sleep(ctx, monitorAgain)
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = client.Close() })
		m.setClient(client)
		connected()
		for e := range client.Events() {
			event(e)
		}
		m.setClient(nil)
		stop()
	}
}

func (m *monitor) setClient(client *qmp.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = client
	close(m.changed)
	m.changed = make(chan struct{})
}

// execute sends a command to QEMU as soon as there is a connection, and decodes the answer into result. It takes at
// most monitorPatience.
func (m *monitor) execute(ctx context.Context, command string, arguments, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, monitorPatience, fmt.Errorf("QEMU does not answer within %v", monitorPatience))
	defer cancel()
	for {
		m.mu.Lock()
		client, changed := m.client, m.changed
		m.mu.Unlock()
		if client != nil {
			return client.Execute(ctx, command, arguments, result)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", command, context.Cause(ctx))
		}
	}
}

// state returns the run state of the machine.
func (m *monitor) state(ctx context.Context) (string, error) {
	var answer struct{ Status string }
	err := m.execute(ctx, "query-status", nil, &answer)
	return answer.Status, err
}

// setShutdownAction sets whether a power-off ends QEMU ("poweroff") or not ("pause").
func (m *monitor) setShutdownAction(ctx context.Context, action string) error {
	return m.execute(ctx, "set-action", map[string]string{"shutdown": action}, nil)
}

// forwardForm matches the forwarded port in the answer to "info usernet".
var forwardForm = regexp.MustCompile(`TCP\[HOST_FORWARD\]\s+\S+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+22\b`)

// sshPort returns the port on the node's loopback interface that is forwarded to the machine's SSH server.
func (m *monitor) sshPort(ctx context.Context) (int, error) {
	var text string
	err := m.execute(ctx, "human-monitor-command", map[string]string{"command-line": "info usernet"}, &text)
	if err != nil {
		return 0, err
	}
	return parseForward(text)
}

// parseForward returns the forwarded port from the answer to "info usernet".
func parseForward(text string) (int, error) {
	found := forwardForm.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("QEMU does not forward a port to the machine's SSH server: %q", text)
	}
	return strconv.Atoi(found[1])
}

// shutdownReason returns the reason in the data of a SHUTDOWN or RESET event.
func shutdownReason(data json.RawMessage) string {
	var d struct{ Reason string }
	_ = json.Unmarshal(data, &d) // an event in another format has no reason
	return d.Reason
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
