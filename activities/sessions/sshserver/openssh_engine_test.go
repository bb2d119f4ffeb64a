//go:build engines

package sshserver

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"switchyard/dev/sessiontest"
	"switchyard/dev/testneeds"
)

// openssh returns a client of a server whose attempt is this machine, in a new directory.
func openssh(t *testing.T) (client *sessiontest.OpenSSH, dir string) {
	t.Helper()
	dir = t.TempDir()
	return sessiontest.NewOpenSSH(t, serve(t, Config{Inside: sessiontest.Local{Dir: dir}}).listener.Addr().String(), "web.run"), dir
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	ended, ok := err.(*exec.ExitError)
	if !ok {
		t.Fatal(err)
	}
	return ended.ExitCode()
}

func TestExecPassesOutputAndExitCode(t *testing.T) {
	t.Parallel()
	client, dir := openssh(t)
	cmd := client.SSH(nil, "pwd; echo to stderr >&2; exit 42")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if code := exitCode(t, cmd.Run()); code != 42 || strings.TrimSpace(stdout.String()) != dir || stderr.String() != "to stderr\n" {
		t.Errorf("%d, %q, %q", code, stdout.String(), stderr.String())
	}
}

func TestEndOfInputReachesTheProgram(t *testing.T) {
	t.Parallel()
	client, _ := openssh(t)
	sent := make([]byte, 3<<20)
	_, _ = rand.Read(sent)
	cmd := client.SSH(nil, "sha256sum; cat; echo after >&2")
	cmd.Stdin = bytes.NewReader(sent)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if want := fmt.Sprintf("%x  -\n", sha256.Sum256(sent)); err != nil || string(out) != want || stderr.String() != "after\n" {
		t.Errorf("%q, %q, %v", out, stderr.String(), err)
	}
	cmd = client.SSH(nil, "cat")
	cmd.Stdin = bytes.NewReader(sent)
	if out, err := cmd.Output(); err != nil || !bytes.Equal(out, sent) {
		t.Errorf("%d bytes of %d came back: %v", len(out), len(sent), err)
	}
}

// TestShellHasATerminalThatResizes types into a shell behind a pseudo-terminal of its own.
func TestShellHasATerminalThatResizes(t *testing.T) {
	t.Parallel()
	client, _ := openssh(t)
	cmd := client.SSH([]string{"-tt", "-o", "SendEnv=LC_*", "-o", "SendEnv=SECRET"})
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_TIME=C.UTF-8", "SECRET=x")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 101, Rows: 41})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	seen := make(chan string, 1000)
	go func() {
		defer close(seen)
		buffer := make([]byte, 4096)
		for {
			n, err := terminal.Read(buffer)
			if err != nil {
				return
			}
			seen <- string(buffer[:n])
		}
	}()
	var screen strings.Builder
	await := func(text string) {
		t.Helper()
		for !strings.Contains(screen.String(), text) {
			select {
			case part, ok := <-seen:
				if !ok {
					t.Fatalf("it ended without %q: %q", text, screen.String())
				}
				screen.WriteString(part)
			case <-time.After(time.Minute):
				t.Fatalf("no %q: %q", text, screen.String())
			}
		}
	}
	write := func(text string) {
		t.Helper()
		if _, err := io.WriteString(terminal, text); err != nil {
			t.Fatal(err)
		}
	}
	write("echo [$(stty size)] $TERM ${LC_TIME}-${SECRET}-\n")
	await("[41 101] xterm-256color C.UTF-8--")
	if err := pty.Setsize(terminal, &pty.Winsize{Cols: 77, Rows: 33}); err != nil {
		t.Fatal(err)
	}
	write("until [ \"$(stty size)\" = '33 77' ]; do sleep 0.05; done; echo size''d\n")
	await("sized")
	write("trap 'echo inter''rupted; exit 7' INT; echo trap''ped; while :; do sleep 0.1; done\n")
	await("trapped")
	write("\x03")
	await("interrupted")
	if code := exitCode(t, cmd.Wait()); code != 7 {
		t.Errorf("exit code %d", code)
	}
}

func TestFilesAreCopiedBothWays(t *testing.T) {
	t.Parallel()
	client, dir := openssh(t)
	here := t.TempDir()
	want := make([]byte, 5<<20)
	_, _ = rand.Read(want)
	if err := os.WriteFile(filepath.Join(here, "up"), want, 0o640); err != nil {
		t.Fatal(err)
	}
	for name, cmd := range map[string]*exec.Cmd{
		"scp up": client.Copy("scp", filepath.Join(here, "up"), client.Target()+":by-scp"), "sftp up": client.Copy("sftp", "-b", "-", client.Target()),
	} {
		cmd.Stdin = strings.NewReader("put " + filepath.Join(here, "up") + " by-sftp\nmkdir d\nrename by-sftp d/by-sftp\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	for _, path := range []string{"by-scp", "d/by-sftp"} {
		if got := readFile(t, filepath.Join(dir, path)); got != string(want) {
			t.Errorf("%s has %d other bytes", path, len(got))
		}
	}
	for name, cmd := range map[string]*exec.Cmd{
		"scp down":  client.Copy("scp", "-r", client.Target()+":d", filepath.Join(here, "scp")),
		"sftp down": client.Copy("sftp", client.Target()+":by-scp", filepath.Join(here, "sftp")),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	for _, path := range []string{"scp/by-sftp", "sftp"} {
		if got := readFile(t, filepath.Join(here, path)); got != string(want) {
			t.Errorf("%s has %d other bytes", path, len(got))
		}
	}
	cmd := client.Copy("scp", client.Target()+":none", here)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "No such file") {
		t.Errorf("%v: %s", err, out)
	}
}

// echoServer starts a server that replies with all that it has read once the client has closed its side.
func echoServer(t *testing.T) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				all, _ := io.ReadAll(conn)
				_, _ = conn.Write(append([]byte("all of it: "), all...))
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// exchange sends a text to a port, closes that side, and returns the reply. It waits until the port is open.
func exchange(t *testing.T, port int, text string) string {
	t.Helper()
	var conn net.Conn
	for deadline := time.Now().Add(time.Minute); ; {
		var err error
		if conn, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestPortsAreForwardedBothWays(t *testing.T) {
	t.Parallel()
	client, _ := openssh(t)
	echo := echoServer(t)
	for flag, name := range map[string]string{"-L": "localhost", "-R": "127.0.0.1"} {
		port := testneeds.FreePort(t)
		cmd := client.SSH([]string{"-N", "-o", "ExitOnForwardFailure=yes", flag, fmt.Sprintf("%d:%s:%d", port, name, echo)})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("a line that is long enough\n", 50_000)
		for range 3 {
			if got := exchange(t, port, text); got != "all of it: "+text {
				t.Errorf("%s: %d bytes", flag, len(got))
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func TestOtherHostsAreNotReached(t *testing.T) {
	t.Parallel()
	client, _ := openssh(t)
	for _, host := range []string{"192.0.2.1", "example.com", "127.0.0.2", "0.0.0.0"} {
		cmd := client.SSH([]string{"-o", "LogLevel=INFO", "-W", host + ":80"})
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "only the task's own ports can be reached") {
			t.Errorf("%s: %v: %s", host, err, out)
		}
	}
	out, err := client.SSH([]string{"-o", "LogLevel=INFO", "-W", "localhost:1"}).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "refused") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = client.SSH([]string{"-N", "-o", "ExitOnForwardFailure=yes", "-R", "192.0.2.1:8080:localhost:80"}).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "remote port forwarding failed") {
		t.Errorf("%v: %s", err, out)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
