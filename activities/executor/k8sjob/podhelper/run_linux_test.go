package podhelper

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// helper returns a command that runs words under a helper whose files are in a new folder.
func helper(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], append([]string{Command, "run", "--"}, words...)...)
	cmd.Env = append(os.Environ(), FrameVariable+"="+testNonce)
	for _, kind := range kinds {
		cmd.Env = append(cmd.Env, kind.Variable()+"="+filepath.Join(dir, string(kind)))
	}
	cmd.Dir = dir
	return cmd
}

// ran is the outcome of a helper.
type ran struct {
	code           int
	stdout, stderr string
	files          map[Kind][]byte
	err            error
}

func run(t *testing.T, cmd *exec.Cmd) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	r := NewReader(testNonce, &stdout)
	cmd.Stdout, cmd.Stderr = r, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := r.Files()
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), files, err}
}

func TestExitCodeIsThatOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	plain, garbage := filepath.Join(dir, "plain"), filepath.Join(dir, "garbage")
	if err := errors.Join(os.WriteFile(plain, []byte("x"), 0o600), os.WriteFile(garbage, []byte("\x00\x01"), 0o600), os.Chmod(garbage, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words []string
		code  int
		why   string
	}{
		{[]string{"true"}, 0, ""},
		{[]string{"sh", "-c", "exit 7"}, 7, ""},
		{[]string{"sh", "-c", "kill -TERM $$"}, 128 + 15, ""},
		{[]string{"sh", "-c", "kill -KILL $$"}, 128 + 9, ""},
		{[]string{"no-such-program"}, ExitNotFound, "start no-such-program: "},
		{[]string{filepath.Join(dir, "missing")}, ExitNotFound, "no such file"},
		{[]string{dir}, ExitCannotRun, "directory"},
		{[]string{plain}, ExitCannotRun, "permission denied"},
		{[]string{garbage}, ExitCannotRun, "exec format error"},
	} {
		got := run(t, helper(t, c.words...))
		if got.code != c.code || !strings.Contains(got.stderr, c.why) || c.why == "" && got.stderr != "" || got.stdout != "" {
			t.Errorf("%q: %+v", c.words, got)
		}
	}
}

func TestProgramHasStreamsAndEnvironment(t *testing.T) {
	cmd := helper(t, "sh", "-c", `cat; echo "$A, ${SWITCHYARD_FRAME-no nonce}"; pwd; echo problem >&2`)
	cmd.Env = append(cmd.Env, "A=value")
	cmd.Stdin = strings.NewReader("input\n")
	got := run(t, cmd)
	if got.stdout != "input\nvalue, no nonce\n"+cmd.Dir+"\n" || got.stderr != "problem\n" || got.code != 0 || got.err != nil || len(got.files) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestFilesOfTheProgramAreTransferred(t *testing.T) {
	got := run(t, helper(t, "sh", "-c", `printf out; echo a=1 > "$SWITCHYARD_OUTPUT"; head -c 4194304 /dev/zero > "$SWITCHYARD_CONTEXT_UPDATE"; exit 3`))
	if got.code != 3 || got.stdout != "out\n" || got.err != nil || string(got.files[Output]) != "a=1\n" || !bytes.Equal(got.files[ContextUpdate], make([]byte, MaxFile)) {
		t.Errorf("code %d, %q, %v, %d files", got.code, got.stdout, got.err, len(got.files))
	}
	got = run(t, helper(t, "sh", "-c", `: > "$SWITCHYARD_OUTPUT"`))
	if got.err != nil || len(got.files) != 0 {
		t.Errorf("an empty file: %+v", got)
	}
	got = run(t, helper(t, "sh", "-c", `head -c 4194305 /dev/zero > "$SWITCHYARD_OUTPUT"; mkfifo "$SWITCHYARD_CONTEXT_UPDATE"`))
	if got.err == nil || !strings.Contains(got.err.Error(), "too large: the file has 4194305 bytes") || !strings.Contains(got.err.Error(), "not a regular file") {
		t.Errorf("files that cannot travel: %v", got.err)
	}
}

func TestWithoutNonceNoFramesArePrinted(t *testing.T) {
	cmd := helper(t, "sh", "-c", `echo a=1 | tee "$SWITCHYARD_OUTPUT"`)
	cmd.Env = append(cmd.Env, FrameVariable+"=")
	if got := run(t, cmd); got.stdout != "a=1\n" || got.code != 0 || !errors.Is(got.err, ErrNoList) {
		t.Errorf("%+v", got)
	}
	cmd = helper(t, "true")
	cmd.Env = append(cmd.Env, FrameVariable+"=a b")
	if got := run(t, cmd); got.code != ExitHelper || !strings.Contains(got.stderr, `SWITCHYARD_FRAME is "a b"`) {
		t.Errorf("a nonce with a space: %+v", got)
	}
}

// startAndAwait starts a helper and waits for the first line of its program.
func startAndAwait(t *testing.T, cmd *exec.Cmd, line string) *bufio.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	if got, err := lines.ReadString('\n'); err != nil || got != line+"\n" {
		t.Fatalf("%q, %v", got, err)
	}
	return lines
}

func TestSignalsReachTheProgram(t *testing.T) {
	for _, number := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGTERM, syscall.SIGWINCH, 40,
	} {
		cmd := helper(t, "sh", "-c", fmt.Sprintf(`trap 'echo caught; exit 9' %d; echo ready; while :; do sleep 0.01; done`, number))
		lines := startAndAwait(t, cmd, "ready")
		if err := cmd.Process.Signal(number); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(lines)
		if _ = cmd.Wait(); !strings.HasPrefix(string(rest), "caught\n") || cmd.ProcessState.ExitCode() != 9 {
			t.Errorf("signal %d: %q, exit code %d", number, rest, cmd.ProcessState.ExitCode())
		}
	}
}

func TestStopReachesChildrenOfTheProgram(t *testing.T) {
	const child = `trap "echo bye > $SWITCHYARD_OUTPUT; exit 0" TERM; echo ready; while :; do sleep 0.01; done`
	cmd := helper(t, "sh", "-c", `sh -c "$0" & wait`, child)
	lines := startAndAwait(t, cmd, "ready")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r := NewReader(testNonce, io.Discard)
	if _, err := io.Copy(r, lines); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	files, err := r.Files()
	if err != nil || string(files[Output]) != "bye\n" || cmd.ProcessState.ExitCode() != 128+15 {
		t.Errorf("%q, %v, exit code %d", files, err, cmd.ProcessState.ExitCode())
	}
}

func TestRemainingProcessesAreKilledBeforeTheFrames(t *testing.T) {
	// Each process is an orphan in a session of its own. The second one would print into the frames.
	cmd := helper(t, "sh", "-c", `
		(setsid sh -c 'echo $$ > pid; exec sleep 1000' &)
		(setsid sh -c 'while :; do echo noise; sleep 0.001; done' &)
		until [ -s pid ]; do sleep 0.01; done
		head -c 100000 /dev/zero > "$SWITCHYARD_OUTPUT"; exit 4`)
	got := run(t, cmd)
	if got.code != 4 || got.err != nil || len(got.files[Output]) != 100_000 {
		t.Fatalf("code %d, %v, %d bytes", got.code, got.err, len(got.files[Output]))
	}
	text, err := os.ReadFile(filepath.Join(cmd.Dir, "pid"))
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is left: %v", pid, err)
	}
}

func TestOrphansAreReapedWhileTheProgramRuns(t *testing.T) {
	got := run(t, helper(t, "sh", "-c", `
		(sh -c 'echo $$ > pid' &)
		until [ -s pid ]; do sleep 0.01; done
		while [ -e "/proc/$(cat pid)" ]; do sleep 0.01; done
		echo reaped; exit 5`))
	if got.code != 5 || got.stdout != "reaped\n" {
		t.Errorf("%+v", got)
	}
}

func TestPipeIsDrainedOnceItIsEmpty(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fd := int(w.Fd())
	before := isDrained(fd)
	_, err = w.WriteString("x")
	full := isDrained(fd)
	_, err2 := r.Read(make([]byte, 1))
	if after := isDrained(fd); err != nil || err2 != nil || !before || full || !after {
		t.Errorf("%v, %v: drained %v, with a byte %v, and after that %v", err, err2, before, full, after)
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !isDrained(int(file.Fd())) || !isDrained(-1) {
		t.Error("what is no pipe is waited for")
	}
}
