//go:build linux && engines

package guest_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor/guest"
	"switchyard/dev/testneeds"
)

// machine simulates a machine that is reached over SSH: each login gets an sshd of its own on this computer.
type machine struct {
	t      *testing.T
	user   *user.User
	config *ssh.ClientConfig
	// command returns the sshd command, which serves a connection on its standard input.
	command func() *exec.Cmd

	mu     sync.Mutex
	logins []*login
}

// login is a connection and the process that serves it.
type login struct {
	conn net.Conn
	cmd  *exec.Cmd
}

// newMachine returns a machine with fresh keys, and the paths of the server's host key and of the client's authorized
// key.
func newMachine(t *testing.T) (m *machine, hostKey, authorized string) {
	t.Helper()
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	private, host := newKey(t, "")
	_, own := newKey(t, "")
	hostKey, authorized = filepath.Join(dir, "host"), filepath.Join(dir, "authorized")
	write(t, hostKey, pem.EncodeToMemory(private))
	write(t, authorized, ssh.MarshalAuthorizedKey(own.PublicKey()))
	return &machine{t: t, user: who, config: &ssh.ClientConfig{
		User: who.Username, Auth: []ssh.AuthMethod{ssh.PublicKeys(own)}, HostKeyCallback: ssh.FixedHostKey(host.PublicKey()),
		// Dropbear 2022.83 exits when it is asked for a key type that it does not have.
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	}}, hostKey, authorized
}

func newKey(t *testing.T, comment string) (*pem.Block, ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return block, signer
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// find returns the path of a program that may not be in the user's PATH, or skips the test.
func find(t *testing.T, name, debian string) string {
	t.Helper()
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/usr/bin"} {
		if path := filepath.Join(dir, name); isFile(path) {
			return path
		}
	}
	testneeds.Missing(t, "%s is missing: install %s", name, debian)
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// newOpenSSH returns a machine with the sshd of OpenSSH and additional lines of configuration.
func newOpenSSH(t *testing.T, more ...string) *machine {
	t.Helper()
	sshd := find(t, "sshd", "openssh-server")
	m, hostKey, authorized := newMachine(t)
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // normally created by its service
			t.Fatal(err)
		}
	}
	config := filepath.Join(t.TempDir(), "sshd_config")
	if !strings.Contains(strings.Join(more, "\n"), "Subsystem") {
		more = append(more, "Subsystem sftp internal-sftp")
	}
	write(t, config, []byte(strings.Join(append(more,
		"HostKey "+hostKey, "AuthorizedKeysFile "+authorized, "StrictModes no", "UsePAM no", "PermitRootLogin yes",
		"PasswordAuthentication no", "PidFile none", "LogLevel VERBOSE",
	), "\n")+"\n"))
	m.command = func() *exec.Cmd { return exec.Command(sshd, "-i", "-e", "-f", config) }
	return m
}

// newDropbear returns a machine with dropbear. Dropbear reads a user's keys only in the home directory, so it gets
// another home, which requires root.
func newDropbear(t *testing.T) *machine {
	t.Helper()
	dropbear := find(t, "dropbear", "dropbear-bin")
	convert := find(t, "dropbearconvert", "dropbear-bin")
	m, hostKey, authorized := newMachine(t)
	if os.Geteuid() != 0 {
		testneeds.Missing(t, "only root can give dropbear a home directory with other keys")
	}
	own := filepath.Join(t.TempDir(), "host")
	if out, err := exec.Command(convert, "openssh", "dropbear", hostKey, own).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(authorized, filepath.Join(home, ".ssh/authorized_keys")); err != nil {
		t.Fatal(err)
	}
	m.command = func() *exec.Cmd {
		cmd := exec.Command("sh", "-c", `mount --bind "$1" "$2" && exec "$3" -i -m -r "$4"`, "sh", home, m.user.HomeDir, dropbear, own)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		return cmd
	}
	return m
}

// connect logs in.
func (m *machine) connect(ctx context.Context) (*ssh.Client, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	near, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	far, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	file, err := far.(*net.TCPConn).File()
	far.Close()
	if err != nil {
		near.Close()
		return nil, err
	}
	cmd := m.command()
	log := &bytes.Buffer{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, file, log
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Start()
	file.Close()
	if err != nil {
		near.Close()
		return nil, err
	}
	one := &login{conn: near, cmd: cmd}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	m.mu.Lock()
	m.logins = append(m.logins, one)
	m.mu.Unlock()
	m.t.Cleanup(func() {
		near.Close()
		_ = cmd.Process.Signal(syscall.SIGCONT)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if m.t.Failed() {
			m.t.Logf("the sshd says:\n%s", log)
		}
	})
	stop := context.AfterFunc(ctx, func() { near.Close() })
	defer stop()
	conn, channels, requests, err := ssh.NewClientConn(near, "machine", m.config)
	if err != nil {
		near.Close()
		return nil, fmt.Errorf("handshake: %w", err)
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// count returns the number of logins.
func (m *machine) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.logins)
}

// last returns the latest login.
func (m *machine) last() *login {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.logins[len(m.logins)-1]
}

// all returns all logins.
func (m *machine) all() []*login {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.logins)
}

// enter returns the inside of the machine.
func (m *machine) enter(t *testing.T, change ...func(*guest.Options)) *guest.Guest {
	t.Helper()
	o := guest.Options{Connect: m.connect, User: m.user.Username, Env: map[string]string{"GREETING": "hello"}}
	for _, one := range change {
		one(&o)
	}
	g := guest.New(o)
	t.Cleanup(func() { _ = g.Close() })
	return g
}
