package inside

import (
	"bufio"
	"bytes"
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
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
	"switchyard/activities/executor/shell/procfs"
	"switchyard/dev/testneeds"
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

func needRoot(t *testing.T) {
	t.Helper()
	if !canSwitch() {
		testneeds.Missing(t, "this test needs root")
	}
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
	suite := func(name, dir, user string, start func(t *testing.T) *target) {
		t.Run(name, func(t *testing.T) {
			executortest.RunInside(t, executortest.InsideHarness{
				Enter:  func(t *testing.T) executor.Inside { return attempt{start(t)} },
				Dir:    func(*testing.T) string { return dir },
				User:   user,
				NoExec: true,
			})
		})
	}
	suite("own", t.TempDir(), "", func(t *testing.T) *target { return startTarget(t, os.Geteuid(), false) })
	needRoot(t)
	suite("foreign root", "/tmp", "", func(t *testing.T) *target { return startTarget(t, 4321, true) })
	suite("foreign root, as root", "/tmp", "0", func(t *testing.T) *target { return startTarget(t, 0, true) })
	suite("foreign root, as a name", "/tmp", "ann", func(t *testing.T) *target { return startTarget(t, 0, true) })
}

func TestDialAndListenUseTheNetworkOfTheProcess(t *testing.T) {
	needRoot(t)
	one := startTarget(t, 4321, true)
	ours, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	port := ours.Addr().(*net.TCPAddr).Port
	if conn, err := one.Dial(t.Context(), port); err == nil {
		conn.Close()
		t.Error("a port of this machine is dialled instead of one of the process")
	}
	theirs, err := one.Listen(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	text, err := os.ReadFile(one.path("net/tcp"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("0100007F:%04X 00000000:0000 0A", port); !strings.Contains(string(text), want) {
		t.Errorf("no socket listens in its network: %s", text)
	}
	for range 200 { // threads that have entered the network serve nothing else
		if conn, err := one.Dial(t.Context(), port); err != nil {
			t.Fatal(err)
		} else {
			conn.Close()
		}
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	// A thread that has entered the network ends.
	for until := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		elsewhere := 0
		tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			if space, err := os.Readlink(task); err == nil && space != own {
				elsewhere++
			}
		}
		if elsewhere == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d threads are still in another network", elsewhere)
		}
	}
}

// Links resolve within the process's root, and files that the user may not read stay unreadable.
func TestLinksStayInTheRoot(t *testing.T) {
	needRoot(t)
	one := startTarget(t, 4321, true)
	secret := filepath.Join(t.TempDir(), "secret")
	closed := filepath.Join(one.root, "closed")
	if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o644), os.WriteFile(closed, []byte("closed"), 0o600),
		os.Symlink(secret, filepath.Join(one.root, "tmp/absolute")), os.Symlink("../../../../.."+secret, filepath.Join(one.root, "tmp/relative")),
		os.Symlink("/", filepath.Join(one.root, "tmp/root")), os.Symlink("/proc/1/root"+secret, filepath.Join(one.root, "tmp/proc"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"absolute", "relative", "proc", "root" + secret, "../../../.." + secret, "/closed"} {
		var b bytes.Buffer
		err := one.ReadTar(t.Context(), path, &b)
		if err == nil || strings.Contains(b.String(), "secret") || strings.Contains(b.String(), "closed") {
			t.Errorf("%s can be read, error %v", path, err)
		}
		if e, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%s: error %v is no *Error", path, err)
		} else if path == "/closed" && !errors.Is(e, os.ErrPermission) {
			t.Errorf("error %v, want one of permissions", err)
		} else if path == "absolute" && !errors.Is(e, os.ErrNotExist) {
			t.Errorf("error %v, want one of a file that is not there", err)
		}
	}
}

// Every thread of a helper runs as the user and has no privileges beyond the user's.
func TestHelperHasNoPrivileges(t *testing.T) {
	needRoot(t)
	for _, id := range []int{4321, 0} {
		one := startTarget(t, id, true)
		near, far := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- one.ServeFiles(t.Context(), far) }()
		if _, err := near.Write([]byte{0, 0, 0, 5, 1, 0, 0, 0, 3}); err != nil { // INIT, version 3
			t.Fatal(err)
		}
		if _, err := near.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		helpers := 0
		paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil || !strings.HasPrefix(string(text), Name+"\x00") {
				continue
			}
			if root, err := os.Readlink(filepath.Join(filepath.Dir(path), "root")); err != nil || root != one.root {
				continue
			}
			helpers++
			threads, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "task/*/status"))
			for _, thread := range threads {
				status, err := os.ReadFile(thread)
				if err != nil {
					t.Fatal(err)
				}
				checkStatus(t, id, string(status))
			}
		}
		if helpers != 1 {
			t.Errorf("%d helpers run, want one", helpers)
		}
		near.Close()
		far.Close()
		<-served
	}
}

func checkStatus(t *testing.T, id int, status string) {
	t.Helper()
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(value)
		switch name {
		case "Uid", "Gid":
			for _, field := range fields {
				if field != strconv.Itoa(id) {
					t.Errorf("%s of a thread is %v, want %d", name, fields, id)
				}
			}
		case "Groups":
			if len(fields) > 0 {
				t.Errorf("a thread is in the groups %v", fields)
			}
		case "NoNewPrivs":
			if value != "\t1" {
				t.Error("a thread may get new privileges")
			}
		case "CapInh", "CapPrm", "CapEff", "CapAmb":
			set, err := strconv.ParseUint(fields[0], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			allowed := capabilities(0)
			if id == 0 {
				allowed = filePrivileges | enterPrivileges
			}
			if capabilities(set)&^allowed != 0 {
				t.Errorf("%s of a thread is %s", name, fields[0])
			}
		}
	}
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

func TestUsersComeFromTheRootOfTheProcess(t *testing.T) {
	needRoot(t)
	one := startTarget(t, 0, true)
	// A file outside the root is not read, although a link in the root names it.
	passwd := filepath.Join(t.TempDir(), "passwd")
	if err := errors.Join(os.WriteFile(passwd, []byte("eve:x:7:7::/:/bin/sh\n"), 0o644), os.Rename(filepath.Join(one.root, "etc/passwd"), filepath.Join(one.root, "etc/p")),
		os.Symlink("/etc/p", filepath.Join(one.root, "etc/passwd"))); err != nil {
		t.Fatal(err)
	}
	u, err := one.User("ann")
	if err != nil || u.UID != 1234 || u.GID != 50 || fmt.Sprint(u.Groups) != "[10 29]" || u.Home != "/home/ann" || u.Shell != "/bin/zsh" {
		t.Errorf("%+v, error %v", u, err)
	}
	if err := errors.Join(os.Remove(filepath.Join(one.root, "etc/passwd")), os.Symlink(passwd, filepath.Join(one.root, "etc/passwd"))); err != nil {
		t.Fatal(err)
	}
	if u, err := one.User("eve"); err == nil {
		t.Errorf("a user of this machine is found: %+v", u)
	}
}
