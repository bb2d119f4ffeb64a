package drill

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"switchyard/dev/processes"
	v1 "switchyard/proto/switchyard/v1"
)

//go:embed task.sh
var taskScript []byte

// Options configures a drill.
type Options struct {
	// Binary is the program under test. Earlier is an earlier program, which Upgrade replaces.
	Binary, Earlier string
	// Dir is an empty folder for everything that the drill writes. The drill leaves it in place.
	Dir   string
	Scale Scale
	// Report receives the figures that a scenario measures. It may be nil.
	Report io.Writer
}

// Cluster is a deployment in processes of its own. Its methods are safe for concurrent use, but each member must be
// started and killed by one goroutine.
type Cluster struct {
	Options
	ctx      context.Context
	temporal string           // address of the Temporal server
	engine   *engine          // nil if the cluster has no container engine of its own
	store    string           // location of the gateways' store
	bucket   *bucket          // nil if the store is a folder
	model    *httptest.Server // nil if the cluster has no agents
	gateways []string
	dealer   *dealer // nil if clients and workers know the gateways
	// workerEnv is added to the environment of workers.
	workerEnv []string

	mu      sync.Mutex
	members map[string]*processes.Process
	// programs are the programs of members that do not run Binary.
	programs map[string]string
	proxies  map[string]*Proxy
	strikes  map[string][]time.Time // times at which a member was killed, stopped, or drained
}

// openCluster creates the folder of a cluster. The scenario starts the members.
func openCluster(ctx context.Context, o Options) (*Cluster, error) {
	if o.Report == nil {
		o.Report = io.Discard
	}
	y := &Cluster{Options: o, ctx: ctx, members: map[string]*processes.Process{}, proxies: map[string]*Proxy{}, strikes: map[string][]time.Time{}}
	y.store = y.storeDir()
	for _, folder := range []string{"marks", "tmp"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	return y, os.WriteFile(filepath.Join(o.Dir, "task.sh"), taskScript, 0o600)
}

// start starts a Temporal server, one gateway and the given workers.
func (y *Cluster) start(workers ...string) error {
	if err := y.startServer(); err != nil {
		return err
	}
	if err := y.startGateway(); err != nil {
		return err
	}
	return y.startWorkers(workers...)
}

// startGateway starts another gateway, which also carries runs.
func (y *Cluster) startGateway() error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	y.gateways = append(y.gateways, "http://"+address)
	return y.restartGateway(len(y.gateways) - 1)
}

// restartGateway starts a gateway again at its previous address.
func (y *Cluster) restartGateway(i int) error {
	p, err := y.startProcess(gatewayName(i), slices.Concat(y.env(), bucketVariables, []string{"TEMPORAL_ADDRESS=" + y.temporal}), y.program(gatewayName(i)),
		"gateway", "--address", strings.TrimPrefix(y.gateways[i], "http://"), "--store", y.store)
	if err != nil {
		return err
	}
	_, err = p.Field(y.ctx, "Gateway")
	return err
}

// clientName is the member that stands for all clients.
const clientName = "client"

// program returns the path of the program that a member runs.
func (y *Cluster) program(name string) string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return cmp.Or(y.programs[name], y.Binary)
}

// setProgram sets the program that a member runs from its next start on.
func (y *Cluster) setProgram(name, path string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.programs[name] = path
}

func gatewayName(i int) string { return fmt.Sprintf("gateway-%d", i) }

// startWorkers starts workers concurrently, each behind its own proxies.
func (y *Cluster) startWorkers(names ...string) error {
	for _, name := range names {
		if err := y.startWorker(name); err != nil {
			return err
		}
	}
	return y.awaitNodes(names...)
}

// startWorker starts a worker, or restarts it. It does not wait until the node is active.
func (y *Cluster) startWorker(name string, flags ...string) error {
	server, err := y.proxy(name+"/temporal", y.temporal)
	if err != nil {
		return err
	}
	door := strings.TrimPrefix(y.gateways[0], "http://")
	if y.dealer != nil {
		door = y.dealer.address
	}
	gateway, err := y.proxy(name+"/gateway", door)
	if err != nil {
		return err
	}
	env := slices.Concat(y.env(), y.workerEnv, []string{"TEMPORAL_ADDRESS=" + server.Address(), "SWITCHYARD_GATEWAY=http://" + gateway.Address()})
	if y.engine != nil {
		env = append(env, "DOCKER_HOST="+y.engine.socket)
	}
	_, err = y.startProcess(name, env,
		y.program(name), append([]string{"worker", "--name", name, "--max-parallel", "16", "--offline-after", y.Scale.Heartbeat.String(),
			"--spool-dir", filepath.Join(y.Dir, "spool-"+name)}, flags...)...)
	return err
}

// awaitNodes waits until the nodes are active.
func (y *Cluster) awaitNodes(names ...string) error {
	return y.eventually("the nodes "+strings.Join(names, " ")+" are active", func() (bool, error) {
		states, err := y.nodes()
		if err != nil {
			return false, nil // the gateway may be unavailable
		}
		for _, name := range names {
			if p := y.process(name); p.HasEnded() {
				return false, fmt.Errorf("worker %s has ended with exit code %d: %s", name, p.ExitCode(), p.LastWords())
			}
			if states[name] != v1.NodeActive {
				return false, nil
			}
		}
		return true, nil
	})
}

// env returns the environment of a member. Private files are inside the cluster's folder, so that several clusters can
// have nodes of the same name.
func (y *Cluster) env() []string {
	return append(processes.CleanEnv(), clusterVariable+"="+y.Dir, "TMPDIR="+filepath.Join(y.Dir, "tmp"), "XDG_STATE_HOME="+filepath.Join(y.Dir, "state"), "XDG_RUNTIME_DIR=", "XDG_DATA_HOME=")
}

// clusterVariable marks every process of a cluster, including those of tasks.
const clusterVariable = "CHAOS_CLUSTER"

// startProcess starts or restarts a member. Its output goes to the cluster's folder.
func (y *Cluster) startProcess(name string, env []string, program string, args ...string) (*processes.Process, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = y.Dir, env
	p, err := processes.Start(cmd, y.Dir, name)
	if err != nil {
		return nil, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.members[name] = p
	return p, nil
}

func (y *Cluster) process(name string) *processes.Process {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.members[name]
}

// proxy returns the proxy of that name. It starts the proxy if it does not exist.
func (y *Cluster) proxy(name, target string) (*Proxy, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if p := y.proxies[name]; p != nil {
		return p, nil
	}
	p, err := StartProxy(target)
	if err == nil {
		y.proxies[name] = p
	}
	return p, err
}

// link returns the proxy between a worker and "temporal" or "gateway".
func (y *Cluster) link(worker, to string) *Proxy {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.proxies[worker+"/"+to]
}

// kill kills a member with SIGKILL, like a crash.
func (y *Cluster) kill(name string) error {
	y.struck(name)
	return y.process(name).Kill()
}

// freeze stops a member with SIGSTOP.
func (y *Cluster) freeze(name string) error {
	y.struck(name)
	return y.process(name).Signal(syscall.SIGSTOP)
}

func (y *Cluster) thaw(name string) error { return y.process(name).Signal(syscall.SIGCONT) }

func (y *Cluster) struck(name string) { y.struckAt(name, time.Now()) }

func (y *Cluster) struckAt(name string, at time.Time) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.strikes[name] = append(y.strikes[name], at)
}

// keepTime is how long a worker on a busy machine may take to store the result of a finished task.
const keepTime = 3 * time.Second

// diedWith reports whether the worker of an execution was killed, stopped or drained around the end of the work, so
// that the result may not have been stored.
func (y *Cluster) diedWith(e execution) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.ContainsFunc(y.strikes[e.node], func(at time.Time) bool {
		return at.Before(e.end.Add(keepTime)) && at.After(e.end.Add(-y.Scale.Heartbeat))
	})
}

// eventually waits for a condition, with the limit for steps that have no time-out of their own.
func (y *Cluster) eventually(what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(y.ctx, y.Scale.Limit)
	defer cancel()
	return processes.Eventually(ctx, what, holds)
}

func (y *Cluster) pause(d time.Duration) error { return processes.Pause(y.ctx, d) }

func (y *Cluster) report(format string, args ...any) { fmt.Fprintf(y.Report, format+"\n", args...) }

// close kills the remaining processes of the cluster, and returns an error for those that should have ended.
func (y *Cluster) close() error {
	y.mu.Lock()
	members := maps.Clone(y.members)
	y.mu.Unlock()
	var errs []error
	for name, p := range members {
		if name != engineName {
			errs = append(errs, p.Kill())
		}
	}
	if y.engine != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(y.ctx), y.Scale.Limit)
		defer cancel()
		errs = append(errs, y.engine.close(ctx))
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, p := range y.proxies {
		p.Close()
	}
	if y.bucket != nil {
		errs = append(errs, y.bucket.server.Close())
	}
	if y.model != nil {
		y.model.CloseClientConnections()
		y.model.Close()
	}
	return errors.Join(append(errs, y.awaitNoProcess())...)
}

// leftoverTime is how long a watchdog may take to end the process trees of a dead worker.
const leftoverTime = 2 * time.Minute

// awaitNoProcess waits until no process of the cluster is left, which must happen by itself once its members are dead.
// It kills whatever remains.
func (y *Cluster) awaitNoProcess() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(y.ctx), leftoverTime)
	defer cancel()
	err := processes.Eventually(ctx, "nothing is left of the tasks of dead workers", func() (bool, error) { return len(y.left()) == 0, nil })
	for _, pid := range y.left() {
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended by now
		err = fmt.Errorf("%w; process %d is left: %q", err, pid, words)
		_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended by now
	}
	return err
}

// left returns the processes that carry the cluster's mark.
func (y *Cluster) left() []int {
	return processesWith(clusterVariable + "=" + y.Dir)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
