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
	"switchyard/activities/executor/lifecycle"
)

const (
	// loginPatience bounds a login after the banner.
	loginPatience = 30 * time.Second
	// firstBannerPatience and bannerPatience bound the wait for the first byte of the SSH server: QEMU accepts a
	// connection and keeps it open even if nothing answers in the machine. On a busy computer, an answer takes seconds.
	firstBannerPatience, bannerPatience = 500 * time.Millisecond, 8 * time.Second
	// enterPatience is the banner wait of a session that begins while the machine boots; bootPatience is how long the
	// session retries.
	enterPatience, bootPatience = 3 * time.Second, time.Minute
	// loginPause is the delay between two login attempts to a booting machine.
	loginPause = 250 * time.Millisecond
	// loginLate is when the log reports that a machine still cannot be entered.
	loginLate = 5 * time.Minute
)

// login tracks whether the SSH server of a machine has answered. The zero value means that it has not.
type login struct {
	mu       sync.Mutex
	answered bool
	// port is the port forwarded to the SSH server, or 0 if it is not known yet.
	port int
	// forgotten is signalled when the machine reboots.
	forgotten chan struct{}
}

// resetAnswered records that the machine reboots, so that no login has succeeded yet.
func (l *login) resetAnswered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = false
	select {
	case l.signal() <- struct{}{}:
	default:
	}
}

// signal returns the channel that forget signals. The caller holds mu.
func (l *login) signal() chan struct{} {
	if l.forgotten == nil {
		l.forgotten = make(chan struct{}, 1)
	}
	return l.forgotten
}

// rebootSignal returns a channel that is signalled when the machine reboots.
func (l *login) rebootSignal() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signal()
}

// hasAnswered reports whether a login has succeeded since the last boot.
func (l *login) hasAnswered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// setAnswered records a successful login.
func (l *login) setAnswered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = true
}

// awaitLogin logs in to the machine after each boot, retries until that succeeds, and reports it in the log.
func (m *machine) awaitLogin() {
	began, isFirst := m.record.StartedAt, !m.isAdopted
	for m.life.Err() == nil {
		m.awaitOneLogin(began, isFirst)
		select {
		case <-m.login.rebootSignal():
			began, isFirst = time.Now(), true
		case <-m.life.Done():
		}
	}
}

// awaitOneLogin retries until a login to a machine that booted at began succeeds. It reports the outcome in the log if
// tell is set.
func (m *machine) awaitOneLogin(began time.Time, tell bool) {
	isLate := false
	for patience := firstBannerPatience; m.life.Err() == nil; sleep(m.life, loginPause) {
		if m.isPaused() || m.lifecycle.State().Phase == lifecycle.Restarting {
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
			m.attempt.Notify(fmt.Sprintf("the machine cannot be entered after %v: %v; it needs an SSH server, and cloud-init or a similar tool that applies the NoCloud seed",
				loginLate, err))
		}
		if isLate {
			sleep(m.life, bannerPatience)
		}
	}
}

// connect logs in to the machine as its user, for a session. It waits while the machine boots. Its errors are meant for
// the user of the session.
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
			return nil, &executor.Refusal{Text: fmt.Sprintf("the node cannot log in to the machine's SSH server: %v", err)}
		case time.Since(began) < m.e.bootPatience:
			continue
		case errors.Is(err, errSilent):
			return nil, &executor.Refusal{Text: "the machine is booting: its SSH server does not answer yet; see its console with `switchyard runs logs`"}
		}
		return nil, &executor.Refusal{Text: fmt.Sprintf("the node cannot log in to the machine's SSH server yet: %v; `switchyard runs logs` shows whether it has applied its NoCloud seed", err)}
	}
}

// errSilent reports that no SSH server answered.
var errSilent = errors.New("nothing answers")

// logIn connects to the forwarded port and logs in. The server's first byte must arrive within patience.
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
	m.login.setAnswered()
	return ssh.NewClient(client, channels, requests), nil
}

// awaitBanner waits for the first byte of a connection. It closes the connection on error.
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

// begun is a connection whose first byte was already read.
type begun struct {
	net.Conn
	from io.Reader
}

// Read starts with the first byte.
func (b *begun) Read(p []byte) (int, error) { return b.from.Read(p) }

// sshPort returns the forwarded port, which is constant while QEMU runs.
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
