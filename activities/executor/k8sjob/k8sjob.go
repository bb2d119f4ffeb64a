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

// selector is of the Jobs of Switchyard and of their pods.
const selector = manifest.LabelManagedBy + "=" + manifest.ManagedBy

// Options say how Jobs are run.
type Options struct {
	// Clusters are those that the node reaches.
	Clusters *cluster.Clusters
	// HelperImage is the image with the helper that brings large outputs out of pods; empty: termination messages do.
	HelperImage string
	// StartTimeout is how long a container may fail to start, as for want of its image; 0: 5 minutes.
	StartTimeout time.Duration
	// Fleet is that of the Jobs that the sweeper looks at.
	Fleet string
	// IsOpen reports whether the run of an attempt still wants it; an error: it is not known. nil: no Job is swept.
	IsOpen func(ctx context.Context, id executor.Identity) (bool, error)
	// SweepInterval is the time between two looks for Jobs whose runs are gone; 0: 2 minutes.
	SweepInterval time.Duration
	Logger        *slog.Logger
}

// Executor runs tasks of type "k8s_job". It is safe for concurrent use.
type Executor struct {
	o Options
	// holder distinguishes this process from others that have the Jobs of a node of the same name.
	holder string

	mu      sync.Mutex
	watches map[string]*jobwatch.Set // by cluster
	live    map[string]*attempt      // by Attempt.ID

	cancel  context.CancelFunc
	sweeper sync.WaitGroup
}

var (
	_ executor.Remote  = (*Executor)(nil)
	_ executor.Steerer = (*Executor)(nil)
)

// New returns an executor, which must be closed.
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

// Close ends the watches. No attempt runs any more.
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

// Type is "k8s_job".
func (e *Executor) Type() string { return v1.TypeK8sJob }

// watch returns the watch of a namespace of a cluster, to be released.
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

// namespaces returns those of a cluster that are watched.
func (e *Executor) namespaces(c *cluster.Cluster) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if set := e.watches[c.Name]; set != nil {
		return set.Namespaces()
	}
	return nil
}

// enter notes that an attempt runs, until leave is called.
func (e *Executor) enter(a *attempt) (leave func()) {
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

// running returns the attempts that this process has.
func (e *Executor) running() []*attempt {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.live))
}
