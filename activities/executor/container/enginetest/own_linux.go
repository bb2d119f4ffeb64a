package enginetest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"

	"switchyard/dev/testneeds"
)

// Private is an engine that belongs to one test, which may kill, stop and suspend it.
// Its containers only have the network "none". Its methods are called by one goroutine
// at a time.
type Private struct {
	// Host is the address of the engine, and Docker a client of it.
	Host   string
	Docker *client.Client
	// Image is the name of an image in the engine with the same contents as that of the
	// function Image.
	Image string

	t     testing.TB
	dir   string
	args  []string
	log   *os.File
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
}

// enginePatience bounds how long an engine may take to start or to end.
const enginePatience = 3 * time.Minute

// Own starts an engine with additional arguments, such as "--live-restore". When the
// test ends, it ends the engine and removes everything the engine created. It needs root
// and dockerd.
func Own(t testing.TB, args ...string) *Private {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		testneeds.Missing(t, "an engine of one's own needs root and dockerd: %v", err)
	}
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("", "sy-engine-")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &Private{
		Host: "unix://" + filepath.Join(dir, "s.sock"), Image: imageName, t: t, dir: dir, log: log,
		args: append([]string{
			"--host", "unix://" + filepath.Join(dir, "s.sock"), "--data-root", filepath.Join(dir, "data"),
			"--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"),
			"--containerd-namespace", filepath.Base(dir), "--containerd-plugins-namespace", filepath.Base(dir) + "-plugins",
			"--bridge", "none", "--iptables=false", "--ip-masq=false",
		}, args...),
	}
	t.Cleanup(p.clean)
	if p.Docker, err = client.NewClientWithOpts(client.WithHost(p.Host), client.WithAPIVersionNegotiation()); err != nil {
		t.Fatal(err)
	}
	p.Start()
	if err := Import(p.Docker, p.Image); err != nil {
		t.Fatal(err)
	}
	return p
}

// launch starts the process of the engine.
func (p *Private) launch() {
	p.t.Helper()
	p.cmd = exec.Command("dockerd", p.args...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	// An engine without a bridge removes a bridge of another engine in its network
	// namespace.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended, cmd := make(chan struct{}), p.cmd
	p.ended = ended
	go func() { defer close(ended); _ = cmd.Wait() }()
}

// Start starts the engine again and waits until it answers. An engine gives up if its containerd takes more than 15 s to start,
// as on a busy machine; Start then starts it once more.
func (p *Private) Start() {
	p.t.Helper()
	p.launch()
	for until := time.Now().Add(enginePatience); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		_, err := p.Docker.Ping(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			said, _ := os.ReadFile(p.log.Name())
			p.t.Fatalf("the engine does not start: %v\n%s", err, said[max(0, len(said)-4000):])
		}
		select {
		case <-p.ended:
			p.endContainerd()
			p.launch()
		default:
		}
	}
}

// Kill kills the engine but not its containers.
func (p *Private) Kill() { p.end(syscall.SIGKILL) }

// Stop ends the engine, which stops its containers first unless it has --live-restore.
func (p *Private) Stop() { p.end(syscall.SIGTERM) }

func (p *Private) end(s syscall.Signal) {
	p.t.Helper()
	if p.cmd == nil {
		return
	}
	p.signal(s)
	select {
	case <-p.ended:
	case <-time.After(enginePatience):
		p.t.Errorf("the engine did not end by %v", s)
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	p.cmd = nil
	p.endContainerd()
	p.Docker.Close() // its connections are dead
}

// endContainerd ends the engine's containerd. It would end by itself sooner or later,
// but an engine that starts before that waits for it forever.
func (p *Private) endContainerd() {
	file := filepath.Join(p.dir, "exec", "containerd", "containerd.pid")
	text, err := os.ReadFile(file)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return
	}
	for until := time.Now().Add(enginePatience); slices.Contains(processesOf(p.dir), pid); time.Sleep(5 * time.Millisecond) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		if time.Now().After(until) {
			p.t.Error("containerd does not end")
			return
		}
	}
	// If no process reaps orphans, containerd counts as running while the file exists.
	_ = os.Remove(file)
}

// Restart ends the engine and starts it again.
func (p *Private) Restart() {
	p.t.Helper()
	p.Stop()
	p.Start()
}

// Hang suspends the engine, and returns when all of its threads have stopped: it accepts calls and does not answer. Resume continues it.
func (p *Private) Hang() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	err := error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		err = unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
	}
	if err != nil {
		p.t.Errorf("wait until the engine has stopped: %v", err)
	}
}

// Resume continues a suspended engine.
func (p *Private) Resume() { p.signal(syscall.SIGCONT) }

func (p *Private) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("%v to the engine: %v", s, err)
	}
}

// clean ends the engine and removes everything it created.
func (p *Private) clean() {
	if p.cmd != nil {
		p.Resume()
		p.removeAll()
		p.Kill()
	}
	// A killed engine leaves behind the shim processes of its containers, which keep
	// these running.
	for _, pid := range processesOf(p.dir) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for until := time.Now().Add(enginePatience); len(processesOf(p.dir)) > 0 && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
	for _, at := range mountsBelow(p.dir) {
		_ = syscall.Unmount(at, syscall.MNT_DETACH)
	}
	p.log.Close()
	p.Docker.Close()
	if err := os.RemoveAll(p.dir); err != nil {
		p.t.Errorf("an engine of a test could not be removed: %v", err)
	}
}

func (p *Private) removeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), enginePatience)
	defer cancel()
	all, err := p.Docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return // clean ends the processes anyway
	}
	var removals sync.WaitGroup
	for _, c := range all {
		removals.Go(func() { _ = p.Docker.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true}) })
	}
	removals.Wait()
}

// processesOf returns the processes whose arguments contain a directory, and their
// children.
func processesOf(dir string) []int {
	entries, _ := os.ReadDir("/proc")
	keepers := map[int]bool{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		words, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if bytes.Contains(words, []byte(dir)) {
			keepers[pid] = true
		}
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && (keepers[pid] || keepers[parentOf(pid)]) {
			found = append(found, pid)
		}
	}
	return found
}

func parentOf(pid int) int {
	stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// mountsBelow returns the mount points below a directory, deepest first.
func mountsBelow(dir string) []string {
	table, _ := os.ReadFile("/proc/self/mounts")
	var at []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			at = append([]string{fields[1]}, at...)
		}
	}
	return at
}
