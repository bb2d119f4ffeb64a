package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
)

// The kinds of nodes of `up`.
const (
	noNode      = "none"
	kubeletNode = "kubelet"
)

// upOptions holds the flags of `up`.
type upOptions struct {
	dir                     string
	apiPort, etcdPort       int
	etcdPeerPort            int
	kubeletPort             int
	node                    string
	cniBin, busybox, images string
	fakeNodes               int
	nodeGrace               time.Duration
	insideNamespaces        bool
}

func parseUp(args []string) (upOptions, error) {
	var o upOptions
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "", "`folder` of the cluster; created if it does not exist")
	flags.IntVar(&o.apiPort, "port", 0, "port of the API server; 0 chooses a free one")
	flags.IntVar(&o.etcdPort, "etcd-port", 0, "port of etcd for clients; 0 chooses a free one")
	flags.IntVar(&o.etcdPeerPort, "etcd-peer-port", 0, "port of etcd for peers; 0 chooses a free one")
	flags.IntVar(&o.kubeletPort, "kubelet-port", 0, "port of the kubelet; 0 chooses a free one")
	flags.StringVar(&o.node, "node", noNode, "none, or kubelet for a node that runs containers (needs root)")
	flags.StringVar(&o.cniBin, "cni-bin", "/usr/lib/cni", "`folder` of the CNI plugins, for --node kubelet")
	flags.StringVar(&o.busybox, "busybox", "busybox", "static busybox for the image busybox:local, for --node kubelet")
	flags.StringVar(&o.images, "images", "", "comma-separated `archives` of more images (docker save), for --node kubelet")
	flags.IntVar(&o.fakeNodes, "fake-nodes", 0, "start this many nodes whose pods run nothing")
	flags.DurationVar(&o.nodeGrace, "node-grace", 40*time.Second, "how long a node may be silent before it is lost")
	flags.BoolVar(&o.insideNamespaces, "inside-namespaces", false, "set by `up` itself, for --node kubelet")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.dir == "" {
		return o, errors.New("--dir is missing")
	}
	if o.node != noNode && o.node != kubeletNode {
		return o, fmt.Errorf("--node is %q; it can be %s or %s", o.node, noNode, kubeletNode)
	}
	dir, err := filepath.Abs(o.dir)
	o.dir = dir
	return o, err
}

// up runs a cluster until standard input ends, SIGTERM or SIGINT. It prints READY and the path of the kubeconfig once
// pods can be created, and then executes the commands on standard input.
func up(args []string) error {
	o, err := parseUp(args)
	if err != nil {
		return err
	}
	if o.node == kubeletNode && !o.insideNamespaces {
		return runInNamespaces(args)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()

	f := files(o.dir)
	if err := f.makeFolders(); err != nil {
		return err
	}
	if err := freePorts(&o.apiPort, &o.etcdPort, &o.etcdPeerPort, &o.kubeletPort); err != nil {
		return err
	}
	if err := f.writeCredentials(o.apiPort); err != nil {
		return err
	}
	client, err := f.newClient()
	if err != nil {
		return err
	}
	c := &cluster{files: f, client: client, supervisor: newSupervisor(f.path("log"))}
	defer c.stopAll()
	// Commands wait in the pipe until the cluster is ready. The end of the input takes effect immediately.
	commands := make(chan string)
	go func() {
		defer cancel()
		readLines(ctx, os.Stdin, commands)
	}()
	if err := c.startAll(ctx, o); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	fmt.Printf("READY %s\n", f.path("kubeconfig"))
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.failed:
			return err
		case line := <-commands:
			fmt.Println(answer(c.execute(ctx, line)))
		}
	}
}

// cluster is a running cluster.
type cluster struct {
	files  files
	client *kubernetes.Clientset
	*supervisor
	// fakeNodes is the number of fake nodes.
	fakeNodes int
	// killed holds the services that a command has killed.
	killed map[string]service
}

func (c *cluster) startAll(ctx context.Context, o upOptions) error {
	for _, svc := range c.files.controlPlane(c.client, o) {
		if err := c.start(ctx, svc); err != nil {
			return err
		}
	}
	if o.node == kubeletNode {
		if err := c.startNode(ctx, o); err != nil {
			return err
		}
	}
	return c.addFakeNodes(ctx, o.fakeNodes)
}
