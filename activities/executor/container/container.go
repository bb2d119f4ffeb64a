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

// Options configures an Executor.
type Options struct {
	// Host is the engine's address, such as "unix:///run/docker.sock", or "" for DOCKER_HOST or else the engine's usual address.
	// The engine must run on this machine, since it mounts directories of it.
	Host string
	// Policy lists what containers are allowed to do beyond the defaults, or is nil to allow nothing more.
	Policy *v1.ContainerPolicy
	// Mounts are directories that every container sees, unless its spec mounts something else at the same path.
	Mounts []*v1.Mount
	// RegistryAuth maps the names of registry credentials in specs to files that hold them.
	RegistryAuth map[string]string
	// OpenTarball opens the object named by a URL and returns its modification time. If OpenTarball is nil, only files of the
	// node can be loaded.
	OpenTarball func(ctx context.Context, url string) (io.ReadCloser, time.Time, error)
	// Environments gives access to the environments that specs name. If it is nil, attempts with an environment are refused.
	Environments executor.Environments
	// ScratchDir is where archives of environments are built, or "" for the system's directory for temporary files.
	ScratchDir string
	// Logger records problems outside of any attempt, or is nil.
	Logger *slog.Logger
}

// Executor runs the tasks of a Kind. One Executor serves all nodes of a process.
type Executor struct {
	*shared
	kind Kind

	mu sync.Mutex
	// running holds the attempts whose container has started, by id.
	running map[string]*running
}

// shared is the state that executors of several kinds share.
type shared struct {
	docker        *client.Client
	opts          Options
	logger        *slog.Logger
	engine        *engine
	endings       *endings
	sweeper       *sweeper
	images        *imageStore
	mounts        *mountPolicy
	addresses     *addresses
	commandChecks *commandChecks
	engineInfo    engineInfo
}

var _ executor.Executor = (*Executor)(nil)

// New returns an Executor of container tasks. The caller calls Close after the last Run has returned. The engine need not be
// running yet.
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
	s := &shared{
		docker: docker, opts: o, logger: o.Logger,
		images: &imageStore{
			docker: docker, logger: o.Logger,
			sources: imageSources{registryAuth: o.RegistryAuth, openTarball: o.OpenTarball, environments: o.Environments},
		},
		mounts:        &mountPolicy{policy: o.Policy, rules: resolveRules(o.Policy.GetMounts()), engineHost: docker.DaemonHost()},
		addresses:     &addresses{docker: docker, policy: o.Policy},
		commandChecks: &commandChecks{docker: docker},
	}
	s.engine = watchEngine(docker)
	s.endings = watchEndings(s.engine)
	s.sweeper = startSweeper(s)
	return s.newExecutor(containerKind), nil
}

// ForKind returns an Executor of another kind that shares the engine, the policy and the images of e. Closing e ends both, so the
// caller closes e only after the attempts of both have ended.
func (e *Executor) ForKind(k Kind) *Executor { return e.newExecutor(k) }

func (s *shared) newExecutor(k Kind) *Executor {
	return &Executor{shared: s, kind: k, running: map[string]*running{}}
}

// Type returns the task type of the executor's kind.
func (e *Executor) Type() string { return e.kind.Type }

// Capabilities returns what the executor can do beyond Run.
func (e *Executor) Capabilities() executor.Capabilities {
	c := executor.Capabilities{Available: e.Available, Steer: e, Enter: e.Enter, Capture: e, Survive: e}
	if e.kind.Lasts {
		c.Restart = e.Restart
	}
	return c
}

// Available returns nil if the engine answers, else the reason.
func (e *Executor) Available() error { return e.engine.available() }

// Close stops the background work and closes the connections to the engine.
func (e *Executor) Close() error {
	e.sweeper.close()
	e.endings.close()
	e.engine.close()
	return e.docker.Close()
}

// find returns the attempt that runs under an id, or nil.
func (e *Executor) find(id string) *running {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[id]
}
