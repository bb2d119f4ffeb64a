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
	// defaultInterval is the time between two probes of a cluster.
	defaultInterval = 30 * time.Second
	// defaultTimeout is how long a cluster may take to answer a probe.
	defaultTimeout = 5 * time.Second
	// firstResult is how long Reachable waits for the first answers.
	firstResult = 3 * time.Second
)

// Options configure how clusters are watched.
type Options struct {
	// Interval is the time between two probes of a cluster; 0 means 30 s.
	Interval time.Duration
	// Timeout is how long a cluster may take to answer a probe; 0 means 5 s.
	Timeout time.Duration
	// WrapTransport wraps the transport of Cluster.Client, for example to count requests. It may be nil. Unlike the
	// credentials below it, the wrapper stays the same when a kubeconfig changes.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// Logger may be nil.
	Logger *slog.Logger
}

// Cluster is a cluster that the node may reach. Its fields never change; after a kubeconfig has changed, Get returns
// another Cluster.
type Cluster struct {
	Name string
	// Client sends its requests with the newest credentials, even after the kubeconfig has changed. The contexts of
	// requests set their time-outs.
	Client kubernetes.Interface
	// Config has the credentials that were valid when Get was called, for callers that need a connection of their own.
	Config *rest.Config
	// Namespace is the namespace of the context, or "default".
	Namespace string
}

// Clusters are the clusters of a node. Its methods are safe for concurrent use. A nil Clusters has no clusters.
type Clusters struct {
	members []*member // by name
	opened  time.Time
	cancel  context.CancelFunc
	group   sync.WaitGroup
}

// Open loads the clusters and starts to watch them until Close. It contacts no cluster, so it succeeds while clusters
// are away. An error names every invalid flag.
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

// Close ends the watch and returns nil. The clients of the clusters continue to work.
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

// Get returns the current state of a cluster, reached or not, or nil if no flag names it.
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

// Reachable returns the names of the clusters that accepted the credentials of this node in their latest probe, sorted.
// It waits only for first answers, at most until 3 s after Open.
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

// Check makes a cluster be probed now rather than at the next interval, and its kubeconfig be read again if it has
// changed. Check returns at once.
func (c *Clusters) Check(name string) {
	if m := c.member(name); m != nil {
		select {
		case m.wake <- struct{}{}:
		default: // a probe is already due
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
