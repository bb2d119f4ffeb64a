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
	// monitorPatience bounds one command, and one try to connect. QEMU answers at once unless its host is overloaded.
	monitorPatience = 5 * time.Second
	// monitorAgain is the pause between two tries to connect.
	monitorAgain = 100 * time.Millisecond
)

// Run states of QEMU that matter here.
const (
	statePaused   = "paused"
	stateRunning  = "running"
	stateShutdown = "shutdown" // after a power-off that does not end QEMU
	stateIOError  = "io-error" // its disk could not be written
	// stateInternalError is that of a machine that cannot continue.
	stateInternalError = "internal-error"
)

// monitor is the connection to the QEMU of a machine. It is made again when it has broken, as long as the machine runs. A worker that
// hangs, and has the first socket, does not hinder the next one, which takes the second.
type monitor struct {
	folder folder

	mu sync.Mutex
	// client is nil while there is no connection; changed is closed and replaced when there is another one.
	client  *qmp.Client
	changed chan struct{}
}

func newMonitor(f folder) *monitor { return &monitor{folder: f, changed: make(chan struct{})} }

// connect makes a connection, by the socket that has none yet.
func (m *monitor) connect(ctx context.Context) (*qmp.Client, error) {
	var errs error
	for _, name := range []string{socketFile, socketFile2} {
		short, cancel := context.WithTimeout(ctx, monitorPatience)
		c, err := qmp.Dial(short, m.folder.file(name))
		cancel()
		if err == nil {
			return c, nil
		}
		errs = errors.Join(errs, err)
	}
	return nil, errs
}

// keep keeps a connection, until ctx ends or the machine does, and passes on its events one at a time. connected is called after each
// connection is made.
func (m *monitor) keep(ctx context.Context, connected func(), event func(qmp.Event)) {
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
		m.set(client)
		connected()
		for e := range client.Events() {
			event(e)
		}
		m.set(nil)
		stop()
	}
}

func (m *monitor) set(client *qmp.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = client
	close(m.changed)
	m.changed = make(chan struct{})
}

// execute has QEMU execute a command, as soon as there is a connection. It takes monitorPatience at most.
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

// state returns the run state.
func (m *monitor) state(ctx context.Context) (string, error) {
	var answer struct{ Status string }
	err := m.execute(ctx, "query-status", nil, &answer)
	return answer.Status, err
}

// setShutdownAction has a power-off end QEMU ("poweroff"), or not ("pause").
func (m *monitor) setShutdownAction(ctx context.Context, action string) error {
	return m.execute(ctx, "set-action", map[string]string{"shutdown": action}, nil)
}

// forwardForm matches the forwarded port in the answer to "info usernet".
var forwardForm = regexp.MustCompile(`TCP\[HOST_FORWARD\]\s+\S+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+22\b`)

// sshPort returns the port of this machine's loopback interface that leads to the SSH server of the virtual one.
func (m *monitor) sshPort(ctx context.Context) (int, error) {
	var text string
	err := m.execute(ctx, "human-monitor-command", map[string]string{"command-line": "info usernet"}, &text)
	if err != nil {
		return 0, err
	}
	return parseForward(text)
}

// parseForward finds the port in the answer to "info usernet".
func parseForward(text string) (int, error) {
	found := forwardForm.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("QEMU forwards no port to the SSH server of the machine: %q", text)
	}
	return strconv.Atoi(found[1])
}

// shutdownReason returns the reason in the data of a SHUTDOWN or RESET event.
func shutdownReason(data json.RawMessage) string {
	var d struct{ Reason string }
	_ = json.Unmarshal(data, &d) // an event of another form has no reason
	return d.Reason
}

// sleep waits until ctx is done, or for a time.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
