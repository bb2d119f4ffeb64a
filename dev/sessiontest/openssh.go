package sessiontest

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/dev/testneeds"
)

// limit bounds how long a program of OpenSSH runs. It far exceeds the time that a test needs, so that no test fails on a
// slow machine.
const limit = 5 * time.Minute

// OpenSSH runs the OpenSSH programs against one server.
type OpenSSH struct {
	t          testing.TB
	host, port string
	// User is the name to log in with.
	User string
	// Key is the path of the private key.
	Key string
	// known is the file with the server's key, which the first connection adds.
	known string
}

// NewOpenSSH returns a client of a server at host:port, with a new key. It skips the test if OpenSSH is missing.
func NewOpenSSH(t testing.TB, address, user string) *OpenSSH {
	t.Helper()
	for _, program := range []string{"ssh", "scp", "sftp"} {
		if _, err := exec.LookPath(program); err != nil {
			testneeds.Missing(t, "%s, of OpenSSH, is missing", program)
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &OpenSSH{t: t, host: host, port: port, User: user, Key: filepath.Join(dir, "key"), known: filepath.Join(dir, "known")}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Key, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// Signer returns the private key.
func (c *OpenSSH) Signer() ssh.Signer {
	c.t.Helper()
	text, err := os.ReadFile(c.Key)
	if err != nil {
		c.t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		c.t.Fatal(err)
	}
	return signer
}

// AuthorizedKey returns the public key as a line of authorized_keys.
func (c *OpenSSH) AuthorizedKey() string {
	return string(ssh.MarshalAuthorizedKey(c.Signer().PublicKey()))
}

// Target returns user@host.
func (c *OpenSSH) Target() string { return c.User + "@" + c.host }

// options returns the options of all programs.
func (c *OpenSSH) options() []string {
	return []string{
		"-F", "/dev/null", "-i", c.Key, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "UserKnownHostsFile=" + c.known,
		"-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
	}
}

// SSH returns a command that runs ssh with options, and with args after the host name. It ends with the test.
func (c *OpenSSH) SSH(options []string, args ...string) *exec.Cmd {
	all := append(append(slices.Clone(options), c.options()...), "-p", c.port, c.Target()) // the first value of an option counts
	return c.command("ssh", append(all, args...)...)
}

// Copy returns a command that runs scp or sftp.
func (c *OpenSSH) Copy(program string, args ...string) *exec.Cmd {
	return c.command(program, append(append(c.options(), "-P", c.port), args...)...)
}

func (c *OpenSSH) command(program string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	c.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Minute
	return cmd
}
