package sshserver

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
	"switchyard/dev/sessiontest"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// server is an SSH server that accepts every key.
type server struct {
	address string
	// end closes all connections with a cause.
	end context.CancelCauseFunc
}

// serve starts a server for the attempt in cfg.
func serve(t *testing.T, cfg Config) *server {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	access := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	access.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	return &server{listener.Addr().String(), cancel}
}

// openssh returns a client of a server whose attempt is this machine, in a new directory.
func openssh(t *testing.T) (client *sessiontest.OpenSSH, dir string) {
	t.Helper()
	dir = t.TempDir()
	return sessiontest.NewOpenSSH(t, serve(t, Config{Inside: sessiontest.Local{Dir: dir}}).address, "web.run"), dir
}

// dial connects an x/crypto client.
func dial(t *testing.T, address string) *ssh.Client {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ssh.Dial("tcp", address, &ssh.ClientConfig{User: "x", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
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

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
