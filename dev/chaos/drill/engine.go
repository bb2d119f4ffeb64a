package drill

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/processes"
)

// ErrNoEngine means that a scenario needs its own container engine and that this machine cannot run one. The wrapping
// error has the reason.
var ErrNoEngine = errors.New("no container engine can be started here")

// engineName is the name of the container engine in its cluster, and engineImage the image of its tasks.
const (
	engineName  = "engine"
	engineImage = "chaos/busybox:1"
)

// engine is a container engine for one cluster, in a network of its own, that a drill may kill.
type engine struct {
	cluster *Cluster
	socket  string
	dir     string
	docker  *client.Client
	// liveRestore makes a restarted engine continue the containers that it finds; otherwise it ends them.
	liveRestore bool
}

// startEngine starts the cluster's engine and loads the image of the tasks.
func (y *Cluster) startEngine() (*engine, error) {
	for _, tool := range []string{"dockerd", "unshare", "busybox"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoEngine, err)
		}
	}
	if os.Getuid() != 0 {
		return nil, fmt.Errorf("%w: only root may", ErrNoEngine)
	}
	// Socket paths are limited in length.
	dir, err := os.MkdirTemp("", "chaos-engine-")
	if err != nil {
		return nil, err
	}
	e := &engine{cluster: y, dir: dir, socket: "unix://" + filepath.Join(dir, "s.sock")}
	if e.docker, err = client.NewClientWithOpts(client.WithHost(e.socket), client.WithAPIVersionNegotiation()); err != nil {
		return nil, err
	}
	y.engine = e
	if err := e.start(y.ctx); err != nil {
		return nil, err
	}
	return e, enginetest.Import(e.docker, engineImage)
}

// start starts or restarts the engine, and waits until it answers.
func (e *engine) start(ctx context.Context) error {
	y := e.cluster
	ctx, cancel := context.WithTimeout(ctx, y.Scale.Limit)
	defer cancel()
	// Remove the PID files of a killed engine: the IDs may now belong to another process or a zombie.
	for _, file := range []string{"pid", "exec/containerd/containerd.pid"} {
		if err := os.Remove(filepath.Join(e.dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	p, err := y.startProcess(engineName, y.env(), "unshare", "-n", "dockerd", "--host", e.socket,
		"--data-root", filepath.Join(e.dir, "data"), "--exec-root", filepath.Join(e.dir, "exec"), "--pidfile", filepath.Join(e.dir, "pid"),
		"--containerd-namespace", filepath.Base(e.dir), "--containerd-plugins-namespace", filepath.Base(e.dir)+"-plugins",
		"--bridge", "none", "--iptables=false", "--ip-masq=false", fmt.Sprintf("--live-restore=%t", e.liveRestore))
	if err != nil {
		return err
	}
	return processes.Eventually(ctx, "the container engine answers", func() (bool, error) {
		if p.HasEnded() {
			return false, fmt.Errorf("the container engine has ended: %s", p.LastWords())
		}
		_, err := e.docker.Ping(ctx)
		return err == nil, nil
	})
}

// containers returns the engine's containers for a run. "" means any run.
func (e *engine) containers(run string) ([]container.Summary, error) {
	label := "switchyard.run"
	if run != "" {
		label += "=" + run
	}
	return e.docker.ContainerList(e.cluster.ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
}

// close stops the engine and removes everything that it holds.
func (e *engine) close(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, e.docker.Close(), e.clear()) }()
	if e.cluster.process(engineName).HasEnded() { // only a running engine can end its containers cleanly
		if err := e.start(ctx); err != nil {
			return err
		}
	}
	left, err := e.docker.ContainerList(ctx, container.ListOptions{All: true})
	for _, c := range left {
		err = errors.Join(err, e.docker.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true}))
	}
	p := e.cluster.process(engineName)
	if e := p.Signal(syscall.SIGTERM); e != nil {
		return errors.Join(err, e)
	}
	_, ended := p.Wait(ctx)
	return errors.Join(err, ended)
}

// killAll kills the remaining processes that the engine has started: processes with the engine's folder in their
// arguments, and their descendants.
func (e *engine) killAll() {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	ours := map[string]bool{}
	for _, dir := range dirs {
		if words, _ := os.ReadFile(filepath.Join(dir, "cmdline")); bytes.Contains(words, []byte(e.dir)) {
			ours[filepath.Base(dir)] = true
		}
	}
	for _, dir := range dirs {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && (ours[filepath.Base(dir)] || len(fields) > 1 && ours[fields[1]]) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended by now
		}
	}
}

// clear removes the engine's folder, including mounts inside it.
func (e *engine) clear() error {
	e.killAll()
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		return err
	}
	defer mounts.Close()
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && strings.HasPrefix(fields[1], e.dir+"/") {
			_ = syscall.Unmount(fields[1], syscall.MNT_DETACH) // the removal below fails if a mount remains
		}
	}
	return os.RemoveAll(e.dir)
}
