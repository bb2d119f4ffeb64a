package sshserver

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// server is an SSH server that accepts every key.
type server struct {
	listener net.Listener
	// end closes all connections with a cause.
	end context.CancelCauseFunc
}

// serve starts a server for the attempt in cfg, on a port.
func serve(t *testing.T, cfg Config) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, cfg)
}

func serveOn(t *testing.T, listener net.Listener, cfg Config) *server {
	t.Helper()
	access := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	access.AddHostKey(newSigner(t))
	ctx, cancel := context.WithCancelCause(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				opened, channels, requests, err := ssh.NewServerConn(conn, access)
				if err != nil {
					return
				}
				Serve(ctx, opened, channels, requests, cfg)
			})
		}
	})
	t.Cleanup(func() {
		cancel(context.Canceled)
		_ = listener.Close()
		work.Wait()
	})
	return &server{listener, cancel}
}

// newSigner returns a new key.
func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// dial connects an x/crypto client.
func (s *server) dial(t *testing.T) *ssh.Client {
	t.Helper()
	conn, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	opened, channels, requests := shakeHands(t, conn)
	client := ssh.NewClient(opened, channels, requests)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// shakeHands logs in as a client.
func shakeHands(t *testing.T, conn net.Conn) (ssh.Conn, <-chan ssh.NewChannel, <-chan *ssh.Request) {
	t.Helper()
	opened, channels, requests, err := ssh.NewClientConn(conn, "", &ssh.ClientConfig{User: "x", Auth: []ssh.AuthMethod{ssh.PublicKeys(newSigner(t))}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened, channels, requests
}

// scripted is an Inside with an Exec that a test provides.
type scripted struct {
	executor.Inside
	exec func(context.Context, executor.Command) (executor.ExitStatus, error)
}

func (s scripted) Exec(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
	return s.exec(ctx, c)
}

var errGone = errors.New("the key was removed\x1b[2J")
