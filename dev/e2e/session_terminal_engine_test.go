//go:build engines

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/creack/pty"

	"switchyard/activities/sessions/wire"
	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// screen is a command on a terminal of its own.
type screen struct {
	t    *testing.T
	cmd  *exec.Cmd
	ptmx *os.File
	out  testneeds.Output
	done chan struct{}
}

func startOnScreen(t *testing.T, cmd *exec.Cmd, columns, rows uint16) *screen {
	t.Helper()
	s := &screen{t: t, cmd: cmd, done: make(chan struct{})}
	var err error
	if s.ptmx, err = pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_, _ = io.Copy(&s.out, s.ptmx) // until the command has ended
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // a no-op if the test has already waited
		<-s.done
		_ = s.ptmx.Close()
	})
	return s
}

// await waits until a text is on the screen.
func (s *screen) await(text string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%v: %q", s.cmd.Args[:3], s.out.String())
		}
	}()
	processes.Await(s.t, fmt.Sprintf("%q is on the screen", text), func() bool {
		if strings.Contains(s.out.String(), text) {
			return true
		}
		select {
		case <-s.done:
			s.t.Fatalf("it has ended without %q: %q", text, s.out.String())
		default:
		}
		return false
	})
}

func (s *screen) write(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.ptmx, text); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) resize(columns, rows uint16) {
	s.t.Helper()
	if err := pty.Setsize(s.ptmx, &pty.Winsize{Cols: columns, Rows: rows}); err != nil {
		s.t.Fatal(err)
	}
}

// terminals returns the ways to run a shell command line on a terminal in a task.
func (f *sessionFleet) terminals(line string) map[string]*exec.Cmd {
	commands := map[string]*exec.Cmd{}
	for _, task := range []string{"box", "work"} {
		cmd := exec.Command(binary, "runs", "exec", "-it", f.id, task, "--", "sh", "-c", line)
		cmd.Env = append(append(processes.CleanEnv(), f.variables("ann", 0)...), "TERM=xterm")
		commands["exec in "+task] = cmd
	}
	commands["OpenSSH"] = as(f.ann, "box."+f.id).SSH([]string{"-tt"}, line)
	return commands
}

// dial returns a session of ann with the first gateway, bypassing the command line.
func (f *sessionFleet) dial(t *testing.T) *wire.Session {
	t.Helper()
	token, err := os.ReadFile(f.file("ann"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := wire.Dial(t.Context(), wire.DialOptions{
		URL: f.urls[0], Path: "/v1/sessions", TLS: f.tls, Token: func() string { return strings.TrimSpace(string(token)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	session := wire.NewSession(conn, true)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// testResizesReachPrograms checks that a program sees each size of its user's terminal.
func testResizesReachPrograms(t *testing.T, f *sessionFleet) {
	for name, cmd := range f.terminals("trap 'echo size $(stty size).' WINCH; echo first $(stty size).; while :; do sleep 0.05; done") {
		s := startOnScreen(t, cmd, 101, 41)
		s.await("first 41 101.")
		for _, size := range [][2]uint16{{77, 33}, {29999, 29998}, {12, 3}} {
			s.resize(size[0], size[1])
			s.await(fmt.Sprintf("size %d %d.", size[1], size[0]))
		}
		s.write("\r~.")
		_ = s.cmd.Wait() // the exit code is read from the state
		if code := s.cmd.ProcessState.ExitCode(); code != 255 {
			t.Errorf("%s, which was left, exits with %d: %q", name, code, s.out.String())
		}
	}
}

// hostile is a name that would change the title, the colour and the contents of a terminal.
const hostile = "a\x1b]0;owned\x07\x1b[2J\x1b[31m\u009b31mb\r\x7f\x08c"

// testEscapesReachNoTerminal checks that remote text reaches the terminal without control characters.
func testEscapesReachNoTerminal(t *testing.T, f *sessionFleet) {
	dir := t.TempDir()
	odd := filepath.Join(dir, "odd")
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{hostile, "\xff\xfe" + hostile} {
		if err := syscall.Mkfifo(filepath.Join(odd, name+"fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/"+name, filepath.Join(odd, name+"link")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(odd, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	failed := f.submit(`
name: odd
tasks:
  fails: { type: shell, spec: { command: "printf '\\033]0;title\\007\\033[31mowned\\r' >&2; exit 3" }, retry: { maxRetries: 0 }, resources: { cores: 0 } }
  image: { type: vps, spec: { image: "no/such:image", pullPolicy: never }, resources: { cores: 0 } }
`)
	processes.Await(t, "the run has ended", func() bool { return f.get(t, 0, failed).State == "failed" })
	shown := 0
	for _, args := range [][]string{
		{"runs", "cp", f.id + "/work:" + odd, filepath.Join(dir, "down")},
		{"runs", "cp", odd, f.id + "/box:/up"},
		{"runs", "cp", f.id + "/box:/" + hostile, filepath.Join(dir, "x")},
		{"runs", "cp", f.id + "/work:" + dir + "/" + hostile, "-"},
		{"runs", "cp", "README.md", f.id + "/box:/no/" + hostile + "/x"},
		{"runs", "cp", hostile + ":/etc/passwd", "-"},
		{"runs", "exec", f.id, hostile, "--", "true"},
		{"runs", "exec", hostile, "--", "true"},
		{"runs", "exec", f.id, "box", "--", hostile},
		{"runs", "exec", f.id, "work", "--", hostile},
		{"runs", "exec", "-w", "/" + hostile, f.id, "box", "--", "true"},
		{"runs", "exec", "-w", "/" + hostile, f.id, "work", "--", "true"},
		{"runs", "exec", "-u", hostile, f.id, "box", "--", "true"},
		{"ssh", f.id, hostile},
		{"runs", "port-forward", f.id, hostile, "0:80"},
		{"vps", "create", "--name", hostile, "--image", "x"},
		{"vps", "create", "--image", hostile},
		{"vps", "status", hostile},
		{"submit", write(t, fmt.Sprintf("name: odd\ntasks: { %q: { type: vps, spec: { image: %q, user: %q } } }\n", hostile, hostile, hostile))},
		{"validate", write(t, fmt.Sprintf("name: odd\ntasks: { %q: { type: vps, spec: { image: %q, user: %q } } }\n", hostile, hostile, hostile))},
		{"runs", "get", failed}, {"runs", "get", failed, "fails"}, {"runs", "events", failed}, {"runs", "watch", failed}, {"runs", "graph", failed},
		{"runs", "timeline", failed}, {"runs", "explain", failed, "fails"}, {"runs", "list"}, {"tasks", "list"}, {"dlq", "list"}, {"vps", "list"},
	} {
		_, stdout, stderr := f.run(t, "ann", 0, args...)
		if at := controlIn(stdout + stderr); at != "" {
			t.Errorf("%q prints control characters: %s", args, at)
		}
		if stdout+stderr == "" {
			t.Errorf("%q prints nothing", args)
		}
		if strings.Contains(stdout+stderr, "owned") {
			shown++
		}
	}
	if shown < 10 {
		t.Errorf("%d commands show a part of the names", shown)
	}
	stdout := f.must(t, "admin", "audit")
	if at := controlIn(stdout); at != "" {
		t.Errorf("the audit prints control characters: %s", at)
	}
	// OpenSSH also prints messages of the gateway's SSH endpoint.
	for _, user := range []string{"box." + f.id, hostile + "." + f.id, "work." + f.id + "." + hostile} {
		for _, line := range []string{"cd \"/$(printf '\\033]0;owned\\007')\" 2>/dev/null", "true"} {
			if code, _, stderr := f.openSSHRun("ann", user, line); code == 255 && strings.Contains(stderr, "switchyard:") && controlIn(stderr) != "" {
				t.Errorf("OpenSSH prints %q", stderr)
			}
		}
	}
}

// controlIn returns the first line of a text with a control character, quoted, or "".
func controlIn(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) || strings.Contains(line, "\xff") {
			return fmt.Sprintf("%q", line)
		}
	}
	return ""
}
