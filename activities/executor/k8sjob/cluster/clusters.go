package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// defaultInterval is the time between two questions to a cluster.
	defaultInterval = 30 * time.Second
	// defaultTimeout is how long a cluster may take to answer.
	defaultTimeout = 5 * time.Second
	// firstResult is how long Reachable waits for the first answers.
	firstResult = 3 * time.Second
)

// Options change how clusters are watched.
type Options struct {
	// Interval is the time between two questions to a cluster, or 0 for 30 s.
	Interval time.Duration
	// Timeout is how long a cluster may take to answer, or 0 for 5 s.
	Timeout time.Duration
	// WrapTransport, unless it is nil, wraps what sends the requests of Cluster.Client, such as to count them. Unlike the
	// credentials below it, the wrapper stays the same when a kubeconfig changes.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// Logger may be nil.
	Logger *slog.Logger
}

// Cluster is one that a node may reach. Its fields never change; Get returns another one after a kubeconfig has changed.
type Cluster struct {
	Name string
	// Client sends its requests with the newest credentials, also after the kubeconfig has changed. Time-outs of requests
	// are those of their contexts.
	Client kubernetes.Interface
	// Config has the credentials that were valid when Get was called, for what needs a connection of its own.
	Config *rest.Config
	// Namespace is that of the context, else "default".
	Namespace string
}

// Clusters are the clusters of a node. Its methods may be called concurrently, and on nil, which has no clusters.
type Clusters struct {
	members []*member // by name
	opened  time.Time
	cancel  context.CancelFunc
	group   sync.WaitGroup
}

// Open loads the clusters and starts to watch them; Close ends that. It asks no cluster, so it also returns while they are
// away. An error names every flag that is wrong.
func Open(configs []Config, o Options) (*Clusters, error) {
	o.Interval, o.Timeout = cmp.Or(o.Interval, defaultInterval), cmp.Or(o.Timeout, defaultTimeout)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	all, err := loadAll(configs)
	if err != nil {
		return nil, err
	}
	c := &Clusters{opened: time.Now()}
	for _, l := range all {
		m, err := newMember(l, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.cfg, err)
		}
		c.members = append(c.members, m)
	}
	slices.SortFunc(c.members, func(a, b *member) int { return cmp.Compare(a.cfg.Name, b.cfg.Name) })
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	for _, m := range c.members {
		c.group.Go(func() { m.watch(ctx) })
	}
	return c, nil
}

// Close ends the watch and returns nil. The clients of the clusters still work.
func (c *Clusters) Close() error {
	if c == nil {
		return nil
	}
	c.cancel()
	c.group.Wait()
	for _, m := range c.members {
		utilnet.CloseIdleConnectionsFor(m.transport)
	}
	return nil
}

// Get returns a cluster as it is now, whether it is reached or not, or nil if no flag names it.
func (c *Clusters) Get(name string) *Cluster {
	if m := c.member(name); m != nil {
		return m.current.Load()
	}
	return nil
}

// Names returns the names of all clusters, sorted.
func (c *Clusters) Names() []string {
	if c == nil {
		return nil
	}
	names := make([]string, len(c.members))
	for i, m := range c.members {
		names[i] = m.cfg.Name
	}
	return names
}

// Reachable returns the names of the clusters that took the credentials of this node when they were last asked, sorted. It
// waits only for first answers, and no longer than 3 s after Open.
func (c *Clusters) Reachable() (names []string) {
	if c == nil {
		return nil
	}
	late := time.After(time.Until(c.opened.Add(firstResult)))
	for _, m := range c.members {
		select {
		case <-m.asked:
		case <-late:
			late = nil
		}
		if late == nil {
			break
		}
	}
	for _, m := range c.members {
		if m.isReached() {
			names = append(names, m.cfg.Name)
		}
	}
	return names
}

// Check has a cluster asked now rather than at the next interval, and its kubeconfig read again if that has changed. It
// returns at once.
func (c *Clusters) Check(name string) {
	if m := c.member(name); m != nil {
		select {
		case m.wake <- struct{}{}:
		default: // a question is due already
		}
	}
}

func (c *Clusters) member(name string) *member {
	if c == nil {
		return nil
	}
	if i := slices.IndexFunc(c.members, func(m *member) bool { return m.cfg.Name == name }); i >= 0 {
		return c.members[i]
	}
	return nil
}
