package inside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
	"switchyard/activities/executor/shell/procfs"
)

const targetName = "inside-target"

// targetIfAsked turns this process into a target, which runs until its standard input ends, if it
// was started as one.
func targetIfAsked() {
	if os.Args[0] != targetName {
		return
	}
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if root := os.Getenv("ROOT"); root != "" {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		must(err)
		lo, err := unix.NewIfreq("lo")
		must(err)
		lo.SetUint16(unix.IFF_UP)
		must(unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
		must(unix.Chroot(root))
		must(os.Chdir("/"))
	}
	if id, err := strconv.Atoi(os.Getenv("ID")); err == nil {
		must(syscall.Setgroups(nil))
		must(syscall.Setresgid(id, id, id))
		must(syscall.Setresuid(id, id, id))
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	syscall.Exit(0)
}

// target is a process that tests enter.
type target struct {
	Process
	root string
	end  func()
}

// startTarget starts a target as a user. With foreign, the target has a root and a network of its
// own.
func startTarget(t *testing.T, id int, foreign bool) *target {
	t.Helper()
	one := &target{root: "/"}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{targetName}
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.Stderr = os.Stderr
	if id != os.Geteuid() {
		cmd.Env = append(cmd.Env, "ID="+strconv.Itoa(id))
	}
	if foreign {
		one.root = t.TempDir()
		for path, text := range map[string]string{
			"etc/passwd": "root:x:0:0::/root:/bin/sh\nbroken line\nann:x:1234:50:Ann:/home/ann:/bin/zsh\n",
			"etc/group":  "staff:x:50:\nwheel:x:10:root,ann\naudio:x:29:ann\n",
		} {
			path = filepath.Join(one.root, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		tmp, dev := filepath.Join(one.root, "tmp"), filepath.Join(one.root, "dev")
		if err := errors.Join(os.Mkdir(tmp, 0o777), os.Chmod(tmp, 0o1777), os.Mkdir(dev, 0o755),
			unix.Mknod(filepath.Join(dev, "zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "ROOT="+one.root)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	one.end = sync.OnceFunc(func() {
		in.Close()
		_ = cmd.Wait()
	})
	t.Cleanup(one.end)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the process says %q, error %v", line, err)
	}
	stat, err := procfs.Read(strconv.Itoa(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	one.Process = Process{PID: cmd.Process.Pid, Start: stat.Start, UID: uint32(id), GID: uint32(id), Dir: "/tmp"}
	return one
}

// attempt is an Inside over a Process that cannot run programs.
type attempt struct{ *target }

func (attempt) Exec(context.Context, executor.Command) (executor.ExitStatus, error) {
	return executor.ExitStatus{}, errors.ErrUnsupported
}

func (a attempt) as(user string) (Process, error) {
	if user == "" {
		return a.Process, nil
	}
	u, err := a.User(user)
	return a.As(u), err
}

func (a attempt) ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error {
	p, err := a.as(user)
	return errors.Join(err, p.ServeFiles(ctx, conn))
}

func (a attempt) ReadTar(ctx context.Context, user, path string, to io.Writer) error {
	p, err := a.as(user)
	return errors.Join(err, p.ReadTar(ctx, path, to))
}

func (a attempt) WriteTar(ctx context.Context, user, path string, rename bool, from io.Reader) error {
	p, err := a.as(user)
	return errors.Join(err, p.WriteTar(ctx, path, rename, from))
}

func TestInsideConformance(t *testing.T) {
	conformance(t, t.TempDir(), "", func(t *testing.T) *target { return startTarget(t, os.Geteuid(), false) })
}

func conformance(t *testing.T, dir, user string, start func(t *testing.T) *target) {
	executortest.RunInside(t, executortest.InsideHarness{
		Enter:  func(t *testing.T) executor.Inside { return attempt{start(t)} },
		Dir:    func(*testing.T) string { return dir },
		User:   user,
		NoExec: true,
	})
}

func TestProcessThatHasEndedIsNotEntered(t *testing.T) {
	one := startTarget(t, os.Geteuid(), false)
	other := one.Process
	other.Start++ // stands for a later process with the same PID
	one.end()
	for _, p := range []Process{one.Process, other, {PID: -1}, {}} {
		_, dial := p.Dial(t.Context(), 80)
		_, listen := p.Listen(t.Context(), 0)
		_, user := p.User("root")
		for _, err := range []error{dial, listen, user, p.ReadTar(t.Context(), "/", io.Discard), p.WriteTar(t.Context(), "/", false, strings.NewReader("")), p.ServeFiles(t.Context(), nil)} {
			if !errors.Is(err, executor.ErrNotRunning) {
				t.Errorf("process %d: error %v, want ErrNotRunning", p.PID, err)
			}
		}
	}
}

func TestFilesAreServedNoLongerThanTheProcessRuns(t *testing.T) {
	one := startTarget(t, os.Geteuid(), false)
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- one.ServeFiles(t.Context(), far) }()
	if _, err := near.Write([]byte{0, 0, 0, 5, 1, 0, 0, 0, 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, near) }()
	one.end()
	if err := <-served; !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v, want ErrNotRunning", err)
	}
	near.Close()
	far.Close()
}
