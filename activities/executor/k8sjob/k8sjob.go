package k8sjob

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/activities/executor/k8sjob/jobwatch"
	"switchyard/activities/executor/k8sjob/manifest"
	v1 "switchyard/proto/switchyard/v1"
)

// defaultStartTimeout is how long a container may fail to start.
const defaultStartTimeout = 5 * time.Minute

// selector selects the Jobs of Switchyard and their pods.
const selector = manifest.LabelManagedBy + "=" + manifest.ManagedBy

// Clusters are the clusters of a node. Its methods are safe for concurrent use. *cluster.Clusters implements it.
type Clusters interface {
	// Get returns a cluster, reached or not, or nil if the node does not have it.
	Get(name string) *cluster.Cluster
	// Reachable returns the names of the clusters that accepted the credentials of the node most recently.
	Reachable() []string
	// Check makes a cluster be probed now. It returns at once.
	Check(name string)
}

// Options configure an Executor.
type Options struct {
	// Clusters are the clusters that the node may reach.
	Clusters Clusters
	// HelperImage is the image of the helper that transfers large outputs out of pods. If it is empty, outputs travel
	// in termination messages.
	HelperImage string
	// StartTimeout is how long a container may fail to start, such as for lack of its image; 0 means 5 minutes.
	StartTimeout time.Duration
	// Fleet is the fleet whose Jobs the sweeper considers.
	Fleet string
	// IsOpen reports whether the run of an attempt still wants it. An error means that this is not known. If IsOpen is
	// nil, no Job is swept.
	IsOpen func(ctx context.Context, id executor.Identity) (bool, error)
	// SweepInterval is the time between two sweeps for Jobs whose runs are gone; 0 means 2 minutes.
	SweepInterval time.Duration
	Logger        *slog.Logger
}

// Executor runs tasks of type "k8s_job". It is safe for concurrent use.
type Executor struct {
	o Options
	// holder distinguishes this process from others that hold Jobs for a node with the same name.
	holder string

	mu      sync.Mutex
	watches map[string]*jobwatch.Set // by cluster
	live    map[string]*attempt      // by Attempt.ID

	cancel  context.CancelFunc
	sweeper sync.WaitGroup
}

var _ executor.Executor = (*Executor)(nil)

// New returns an executor, which the caller must close.
func New(o Options) *Executor {
	if o.StartTimeout <= 0 {
		o.StartTimeout = defaultStartTimeout
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Executor{o: o, holder: rand.Text()[:10], watches: map[string]*jobwatch.Set{}, live: map[string]*attempt{}, cancel: cancel}
	if o.IsOpen != nil {
		e.sweeper.Go(func() { e.sweep(ctx) })
	}
	return e
}

// Close ends the watches. No attempt may still run.
func (e *Executor) Close() error {
	e.cancel()
	e.sweeper.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, set := range e.watches {
		set.Close()
	}
	return nil
}

// Type returns "k8s_job".
func (e *Executor) Type() string { return v1.TypeK8sJob }

// Capabilities returns what the executor can do beyond Run.
func (e *Executor) Capabilities() executor.Capabilities {
	return executor.Capabilities{Steer: e, Recorded: e.Recorded}
}

// watch returns the watch of a namespace, and a function that releases it.
func (e *Executor) watch(c *cluster.Cluster, namespace string) (*jobwatch.Watch, func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	set := e.watches[c.Name]
	if set == nil {
		set = jobwatch.NewSet(c.Client, selector)
		e.watches[c.Name] = set
	}
	return set.Use(namespace)
}

// namespaces returns the watched namespaces of a cluster.
func (e *Executor) namespaces(c *cluster.Cluster) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if set := e.watches[c.Name]; set != nil {
		return set.Namespaces()
	}
	return nil
}

// register registers a running attempt until leave is called.
func (e *Executor) register(a *attempt) (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live[a.ID] = a
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.live, a.ID)
	}
}

func (e *Executor) find(id string) *attempt {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.live[id]
}

// running returns the attempts of this process.
func (e *Executor) running() []*attempt {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.live))
}
