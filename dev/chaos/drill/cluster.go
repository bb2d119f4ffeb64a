package drill

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

//go:embed task.sh
var taskScript []byte

// Options say what a drill is run with.
type Options struct {
	// Binary is the program under test.
	Binary string
	// Dir is an empty folder for all that the drill writes. It is left there.
	Dir   string
	Scale Scale
	// Report takes the figures that a scenario measures; nil: they are dropped.
	Report io.Writer
}

// Cluster is a deployment in processes of its own. Its methods are safe for
// concurrent use, but one part is started and killed by one goroutine.
type Cluster struct {
	Options
	ctx      context.Context
	temporal string  // address of the server
	engine   *engine // nil: the cluster has no container engine of its own
	store    string  // where its gateways keep their values
	bucket   *bucket // nil: that is a folder
	gateways []string

	mu        sync.Mutex
	processes map[string]*process
	proxies   map[string]*Proxy
	strikes   map[string][]time.Time // when a part was killed, stopped, or drained of what it ran
}

// openCluster makes the folder of a cluster; members are started by the scenario.
func openCluster(ctx context.Context, o Options) (*Cluster, error) {
	if o.Report == nil {
		o.Report = io.Discard
	}
	y := &Cluster{Options: o, ctx: ctx, processes: map[string]*process{}, proxies: map[string]*Proxy{}, strikes: map[string][]time.Time{}}
	y.store = y.storeDir()
	for _, folder := range []string{"marks", "tmp"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	return y, os.WriteFile(filepath.Join(o.Dir, "task.sh"), taskScript, 0o600)
}

// start starts a Temporal server, one gateway and some workers.
func (y *Cluster) start(workers ...string) error {
	if err := y.startServer(); err != nil {
		return err
	}
	if err := y.startGateway(); err != nil {
		return err
	}
	return y.startWorkers(workers...)
}

// startGateway starts another gateway, which carries runs too.
func (y *Cluster) startGateway() error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	y.gateways = append(y.gateways, "http://"+address)
	return y.restartGateway(len(y.gateways) - 1)
}

// restartGateway starts a gateway at the address that it had.
func (y *Cluster) restartGateway(i int) error {
	p, err := startProcess(y.Dir, gatewayName(i), slices.Concat(y.env(), bucketVariables, []string{"TEMPORAL_ADDRESS=" + y.temporal}), y.Binary,
		"gateway", "--address", strings.TrimPrefix(y.gateways[i], "http://"), "--store", y.store)
	if err != nil {
		return err
	}
	y.keep(p)
	_, err = p.expect(y.ctx, "Gateway")
	return err
}

func gatewayName(i int) string { return fmt.Sprintf("gateway-%d", i) }

// startWorkers starts workers side by side, each behind proxies of its own.
func (y *Cluster) startWorkers(names ...string) error {
	for _, name := range names {
		if err := y.startWorker(name); err != nil {
			return err
		}
	}
	return y.awaitNodes(names...)
}

// startWorker starts a worker, or starts it again. It does not wait for it.
func (y *Cluster) startWorker(name string, flags ...string) error {
	server, err := y.proxy(name+"/temporal", y.temporal)
	if err != nil {
		return err
	}
	gateway, err := y.proxy(name+"/gateway", strings.TrimPrefix(y.gateways[0], "http://"))
	if err != nil {
		return err
	}
	env := append(y.env(), "TEMPORAL_ADDRESS="+server.Address(), "SWITCHYARD_GATEWAY=http://"+gateway.Address())
	if y.engine != nil {
		env = append(env, "DOCKER_HOST="+y.engine.socket)
	}
	p, err := startProcess(y.Dir, name, env,
		y.Binary, append([]string{"worker", "--name", name, "--max-parallel", "16", "--offline-after", y.Scale.Heartbeat.String(),
			"--spool-dir", filepath.Join(y.Dir, "spool-"+name)}, flags...)...)
	if err != nil {
		return err
	}
	y.keep(p)
	return nil
}

// awaitNodes waits until nodes are active.
func (y *Cluster) awaitNodes(names ...string) error {
	return y.eventually("the nodes "+strings.Join(names, " ")+" are active", func() (bool, error) {
		states, err := y.nodes()
		if err != nil {
			return false, nil // the gateway may be away
		}
		for _, name := range names {
			if p := y.process(name); p.hasEnded() {
				return false, fmt.Errorf("worker %s has ended with exit code %d: %s", name, p.cmd.ProcessState.ExitCode(), p.lastWords())
			}
			if states[name] != v1.NodeActive {
				return false, nil
			}
		}
		return true, nil
	})
}

// env returns the environment of a member. Its private files are the cluster's, so that
// clusters side by side have nodes of the same name.
func (y *Cluster) env() []string {
	return append(cleanEnv(), clusterVariable+"="+y.Dir, "TMPDIR="+filepath.Join(y.Dir, "tmp"), "XDG_RUNTIME_DIR=", "XDG_DATA_HOME=")
}

// clusterVariable marks every process of a cluster, those of tasks too.
const clusterVariable = "CHAOS_CLUSTER"

// cleanEnv is this process's environment without what would point the binary at
// a real cluster.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SWITCHYARD_") && !strings.HasPrefix(kv, "TEMPORAL_") && !strings.HasPrefix(kv, "CHAOS_") {
			env = append(env, kv)
		}
	}
	return env
}

func (y *Cluster) keep(p *process) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.processes[p.name] = p
}

func (y *Cluster) process(name string) *process {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.processes[name]
}

// proxy returns the proxy of that name, and starts it when there is none.
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

// link is the proxy between a worker and "temporal" or "gateway".
func (y *Cluster) link(worker, to string) *Proxy {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.proxies[worker+"/"+to]
}

// kill ends a part as a crash does.
func (y *Cluster) kill(name string) error {
	y.struck(name)
	return y.process(name).kill()
}

// freeze stops a part as SIGSTOP does.
func (y *Cluster) freeze(name string) error {
	y.struck(name)
	return y.process(name).signal(syscall.SIGSTOP)
}

func (y *Cluster) thaw(name string) error { return y.process(name).signal(syscall.SIGCONT) }

func (y *Cluster) struck(name string) { y.struckAt(name, time.Now()) }

func (y *Cluster) struckAt(name string, at time.Time) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.strikes[name] = append(y.strikes[name], at)
}

// keepTime is the time that a worker may take, on a busy machine, to keep the
// result of a task that has done its work.
const keepTime = 3 * time.Second

// diedWith reports whether the worker of an execution was killed, stopped or drained
// just after it had done its work, or a little before: then nothing kept the result.
func (y *Cluster) diedWith(e execution) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.ContainsFunc(y.strikes[e.node], func(at time.Time) bool {
		return at.Before(e.end.Add(keepTime)) && at.After(e.end.Add(-y.Scale.Heartbeat))
	})
}

// eventually waits for a condition, as long as something may take that has no
// time-out of its own.
func (y *Cluster) eventually(what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(y.ctx, y.Scale.Limit)
	defer cancel()
	return eventually(ctx, what, holds)
}

func (y *Cluster) pause(d time.Duration) error { return pause(y.ctx, d) }

func (y *Cluster) report(format string, args ...any) { fmt.Fprintf(y.Report, format+"\n", args...) }

// close kills what is left of the cluster, and reports which of it should not have been there.
func (y *Cluster) close() error {
	var errs []error
	if y.engine != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(y.ctx), y.Scale.Limit)
		defer cancel()
		errs = append(errs, y.engine.close(ctx))
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, p := range y.processes {
		errs = append(errs, p.kill())
	}
	for _, p := range y.proxies {
		p.Close()
	}
	if y.bucket != nil {
		errs = append(errs, y.bucket.server.Close())
	}
	return errors.Join(append(errs, y.awaitNoProcess())...)
}

// leftoverTime is how long a watchdog may take to end the trees of a dead worker.
const leftoverTime = 2 * time.Minute

// awaitNoProcess waits until no process of the cluster is left, as must come about
// by itself once its parts are dead, and ends what does not.
func (y *Cluster) awaitNoProcess() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(y.ctx), leftoverTime)
	defer cancel()
	err := eventually(ctx, "nothing is left of the tasks of dead workers", func() (bool, error) { return len(y.left()) == 0, nil })
	for _, pid := range y.left() {
		err = fmt.Errorf("%w; process %d is left", err, pid)
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by now
	}
	return err
}

// left are the processes that carry the mark of the cluster.
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
