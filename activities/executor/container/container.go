package container

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"switchyard/activities/executor"
	"switchyard/activities/executor/singleflight"
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
	// Environments are those that specs name; nil: attempts with one are refused.
	Environments executor.Environments
	// ScratchDir is where archives of environments lie while they are made; empty: where the system keeps temporary files.
	ScratchDir string
	// Logger takes what goes wrong outside of any attempt; nil: nothing is logged.
	Logger *slog.Logger
}

// Executor runs the tasks of a Kind. One is enough for all nodes of a process.
type Executor struct {
	*shared
	kind Kind

	mu sync.Mutex
	// running are the attempts whose container has started, by their ids.
	running map[string]*running
}

// shared is what executors of several kinds have in common.
type shared struct {
	docker        *client.Client
	opts          Options
	rules         []*v1.MountRule // those of the policy, as they resolve
	logger        *slog.Logger
	engine        *engine
	endings       *endings
	sweeper       *sweeper
	commandChecks commandChecks
	engineInfo    engineInfo

	pulls, loads singleflight.Group[[]string]
	versions     singleflight.Group[string] // loads environments, and returns the ids of their images
	environments environmentsInUse
	addresses    addresses
	silence      time.Duration // instead of silenceTimeout, where it is not 0
}

var (
	_ executor.Steerer   = (*Executor)(nil)
	_ executor.Survivor  = (*Executor)(nil)
	_ executor.Available = (*Executor)(nil)
	_ executor.Enterer   = (*Executor)(nil)
	_ executor.Capturer  = (*Executor)(nil)
)

// New returns an Executor of container tasks; whoever made it calls Close after the last Run has returned.
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
	s := &shared{docker: docker, opts: o, logger: o.Logger, rules: resolveRules(o.Policy.GetMounts())}
	s.engine = watchEngine(docker)
	s.endings = watchEndings(s.engine)
	s.sweeper = startSweeper(s)
	return s.newExecutor(containerKind), nil
}

// ForKind returns an Executor of another kind that shares the engine, the policy and the images of e. Close of e ends both, and is
// called when attempts of both have ended.
func (e *Executor) ForKind(k Kind) *Executor { return e.newExecutor(k) }

func (s *shared) newExecutor(k Kind) *Executor {
	return &Executor{shared: s, kind: k, running: map[string]*running{}}
}

// Type returns the task type of the executor's kind.
func (e *Executor) Type() string { return e.kind.Type }

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
