package container

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// Options say how an Executor works.
type Options struct {
	// Host is the engine's address, such as "unix:///run/docker.sock"; empty: that of
	// DOCKER_HOST, or the engine's usual one. The engine must be on this machine: it
	// mounts directories of it.
	Host string
	// Policy is what containers may do beyond the harmless; nil: nothing.
	Policy *v1.ContainerPolicy
	// Mounts are directories that every container sees, unless its spec mounts something else in their place.
	Mounts []*v1.Mount
	// RegistryAuth are files with credentials for registries, by the names that specs
	// call them by.
	RegistryAuth map[string]string
	// OpenTarball opens the object that a URL names and says when it was changed last;
	// nil: only files of the node can be loaded.
	OpenTarball func(ctx context.Context, url string) (io.ReadCloser, time.Time, error)
	// Logger takes what goes wrong outside of any attempt; nil: nothing is logged.
	Logger *slog.Logger
}

// Executor runs container tasks. One is enough for all nodes of a process.
type Executor struct {
	docker        *client.Client
	opts          Options
	rules         []*v1.MountRule // those of the policy, as they resolve
	logger        *slog.Logger
	engine        *engine
	endings       *endings
	sweeper       *sweeper
	commandChecks commandChecks
	engineInfo    engineInfo

	mu sync.Mutex
	// running are the attempts whose container has started, by their ids.
	running map[string]*running

	pulls, loads singleflight
	addresses    addresses
	silence      time.Duration // instead of silenceTimeout, where it is not 0
}

var (
	_ executor.Steerer   = (*Executor)(nil)
	_ executor.Survivor  = (*Executor)(nil)
	_ executor.Available = (*Executor)(nil)
)

// New returns an Executor; whoever made it calls Close after the last Run has returned.
// The engine need not be there yet.
func New(o Options) (*Executor, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	opts := []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}
	if o.Host != "" {
		opts = append(opts, client.WithHost(o.Host))
	}
	docker, err := client.NewClientWithOpts(opts...)
	if err != nil {
		return nil, err
	}
	e := &Executor{docker: docker, opts: o, logger: o.Logger, running: map[string]*running{}, rules: resolveRules(o.Policy.GetMounts())}
	e.engine = watchEngine(docker)
	e.endings = watchEndings(e.engine)
	e.sweeper = startSweeper(e)
	return e, nil
}

// Type is "container".
func (e *Executor) Type() string { return v1.TypeContainer }

// Available reports whether the engine answers.
func (e *Executor) Available() error { return e.engine.available() }

// Close gives up the connections to the engine.
func (e *Executor) Close() error {
	e.sweeper.close()
	e.endings.close()
	e.engine.close()
	return e.docker.Close()
}

// find returns the attempt that runs under an id; nil: none does.
func (e *Executor) find(id string) *running {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[id]
}
