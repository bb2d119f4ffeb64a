package kubetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"switchyard/dev/kubetest/program"
)

// Options configures a cluster.
type Options struct {
	// FakeNodes is the initial number of fake nodes.
	FakeNodes int
	// RealNode makes this machine a node with the name RealNodeName. It needs root. A machine has one real node at a
	// time, so Start waits until another cluster with one has ended.
	RealNode bool
	// NodeGrace is how long a node may be silent before it is lost; 0 means the usual 40 s. Its pods are deleted 10 s
	// later.
	NodeGrace time.Duration
	// Images lists archives in the format of `docker save` with images for the real node besides BusyboxImage.
	Images []string
}

const (
	// RealNodeName is the name of the real node.
	RealNodeName = "node1"
	// BusyboxImage is an image with a shell that every real node has. Pods never pull it.
	BusyboxImage = "busybox:local"
	// HostAddress is the address at which pods of the real node reach servers of this machine that listen on all
	// addresses.
	HostAddress = "10.231.77.1"
)

// Cluster is a running Kubernetes. Its methods are safe for concurrent use.
type Cluster struct {
	// Kubeconfig is the path of a file that names the cluster and a user with all rights.
	Kubeconfig string
	// Client has all rights and no rate limit.
	Client kubernetes.Interface

	process *process
}

// Start starts a cluster that ends with the test. It waits until pods can be placed on all nodes.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	program := Program(t)
	if o.RealNode {
		needNode(t)
	}
	c, err := newCluster(program, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.process.logs())
		}
		if err := c.process.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Open starts a cluster for a program that is not a test and must close it. Unlike Start, it does not check the
// requirements of a real node.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	path, err := program.Find(ctx)
	if err != nil {
		return nil, err
	}
	return newCluster(path, o)
}

// Close ends a cluster that Open started, and removes its folder.
func (c *Cluster) Close() error { return c.process.Stop() }

func newCluster(program string, o Options) (*Cluster, error) {
	p, err := startProcess(program, o)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Kubeconfig: p.kubeconfig, Client: client, process: p}, nil
}

// shared is the cluster that Shared returns.
var shared struct {
	sync.Mutex
	cluster *Cluster
}

// Shared returns a cluster with two fake nodes that all tests of this process share, each in its own namespaces. Tests
// must not pause or kill parts of it. TestMain ends it with StopShared after the tests. Otherwise it ends with the
// process and leaves its folder behind.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	program := Program(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		c, err := newCluster(program, Options{FakeNodes: 2})
		if err != nil {
			t.Fatal(err)
		}
		shared.cluster = c
	}
	return shared.cluster
}

// StopShared ends the cluster of Shared, if it exists.
func StopShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		return
	}
	if err := shared.cluster.process.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	shared.cluster = nil
}
