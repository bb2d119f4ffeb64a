package qemu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
)

const (
	// loginPatience bounds a login to a machine that boots.
	loginPatience = 30 * time.Second
	// firstBannerPatience and bannerPatience bound the wait for the first byte of its SSH server: QEMU makes a connection, and keeps it
	// open, although nothing answers in the machine. On a computer that is busy, an answer takes seconds.
	firstBannerPatience, bannerPatience = 500 * time.Millisecond, 8 * time.Second
	// enterPatience is that of a session that begins while the machine boots, and bootPatience is how long it tries again.
	enterPatience, bootPatience = 3 * time.Second, time.Minute
	// loginPause is between two tries to log in to a machine that boots.
	loginPause = 250 * time.Millisecond
	// loginLate is when the log says that a machine still cannot be entered.
	loginLate = 5 * time.Minute
)

// login knows whether the SSH server of a machine answers. The zero value does not know it yet.
type login struct {
	mu       sync.Mutex
	answered bool
	// port is that of forwardForm, or 0 if it is not known.
	port int
	// forgotten is signalled when the machine boots again.
	forgotten chan struct{}
}

// forget notes that the machine boots.
func (l *login) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = false
	select {
	case l.signal() <- struct{}{}:
	default:
	}
}

// signal returns the channel of forget. The caller holds mu.
func (l *login) signal() chan struct{} {
	if l.forgotten == nil {
		l.forgotten = make(chan struct{}, 1)
	}
	return l.forgotten
}

// boots returns a channel that is signalled when the machine boots again.
func (l *login) boots() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signal()
}

// hasAnswered reports whether a login was possible since the machine has booted.
func (l *login) hasAnswered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// note notes that a login was possible.
func (l *login) note() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = true
}

// awaitLogin logs in to the machine after each boot until that is possible, and says so in the log.
func (m *machine) awaitLogin() {
	began, isFirst := m.record.StartedAt, !m.isAdopted
	for m.life.Err() == nil {
		m.awaitOneLogin(began, isFirst)
		select {
		case <-m.login.boots():
			began, isFirst = time.Now(), true
		case <-m.life.Done():
		}
	}
}

// awaitOneLogin logs in to a machine that has booted at a time.
func (m *machine) awaitOneLogin(began time.Time, tell bool) {
	isLate := false
	for patience := firstBannerPatience; m.life.Err() == nil; sleep(m.life, loginPause) {
		if m.isPaused() || m.isRestarting() {
			continue
		}
		client, err := m.logIn(m.life, patience)
		patience = min(2*patience, bannerPatience)
		if err == nil {
			_ = client.Close()
			if tell {
				m.attempt.Notify(fmt.Sprintf("the machine answers on SSH after %v", time.Since(began).Round(100*time.Millisecond)))
			}
			return
		}
		if tell && !isLate && time.Since(began) > loginLate && m.life.Err() == nil {
			isLate = true
			m.attempt.Notify(fmt.Sprintf("the machine cannot be entered after %v: %v; it needs an SSH server, and cloud-init or the like, which takes the NoCloud seed",
				loginLate, err))
		}
		if isLate {
			sleep(m.life, bannerPatience)
		}
	}
}

// connect logs in to the machine as its user, for a session, which waits while the machine boots. Its errors are for whoever began that.
func (m *machine) connect(ctx context.Context) (*ssh.Client, error) {
	for began := time.Now(); ; sleep(ctx, loginPause) {
		answered, patience := m.login.hasAnswered(), enterPatience
		if answered {
			patience = loginPatience
		}
		client, err := m.logIn(ctx, patience)
		switch {
		case err == nil:
			return client, nil
		case m.isEnding():
			return nil, executor.ErrNotRunning
		case m.isPaused():
			return nil, errPaused
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case answered:
			return nil, &executor.Refusal{Text: fmt.Sprintf("its SSH server does not let the node in: %v", err)}
		case time.Since(began) < m.e.bootPatience:
			continue
		case errors.Is(err, errSilent):
			return nil, &executor.Refusal{Text: "it is booting: its SSH server does not answer yet; `switchyard runs logs` shows its console"}
		}
		return nil, &executor.Refusal{Text: fmt.Sprintf("its SSH server does not let the node in yet: %v; `switchyard runs logs` shows whether it has taken its NoCloud seed", err)}
	}
}

// errSilent is why a machine that boots cannot be entered.
var errSilent = errors.New("nothing answers")

// logIn connects to the forwarded port and logs in, if the first byte comes in time.
func (m *machine) logIn(ctx context.Context, patience time.Duration) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loginPatience+patience, errSilent)
	defer cancel()
	config, err := clientConfig(m.record)
	if err != nil {
		return nil, err
	}
	port, err := m.sshPort(ctx)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if conn, err = awaitBanner(conn, patience); err != nil {
		return nil, err
	}
	client, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if !stop() {
		if err == nil {
			_ = client.Close()
		}
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	m.login.note()
	return ssh.NewClient(client, channels, requests), nil
}

// awaitBanner waits for the first byte of a connection, which it closes after an error.
func awaitBanner(conn net.Conn, patience time.Duration) (net.Conn, error) {
	first := make([]byte, 1)
	err := conn.SetReadDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = io.ReadFull(conn, first)
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(errSilent, conn.Close())
	}
	return &begun{conn, io.MultiReader(bytes.NewReader(first), conn)}, nil
}

// begun is a connection whose first byte was read.
type begun struct {
	net.Conn
	from io.Reader
}

// Read reads from the first byte on.
func (b *begun) Read(p []byte) (int, error) { return b.from.Read(p) }

// sshPort returns the forwarded port, which does not change while QEMU runs.
func (m *machine) sshPort(ctx context.Context) (int, error) {
	m.login.mu.Lock()
	port := m.login.port
	m.login.mu.Unlock()
	if port != 0 {
		return port, nil
	}
	port, err := m.monitor.sshPort(ctx)
	if err != nil {
		return 0, err
	}
	m.login.mu.Lock()
	defer m.login.mu.Unlock()
	m.login.port = port
	return port, nil
}
