package fakekubelet

import (
	"context"
	"flag"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Main runs the command fake-kubelet until SIGTERM or SIGINT.
func Main(args []string) error {
	flags := flag.NewFlagSet("fake-kubelet", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "`file` with the kubeconfig of a user with all rights")
	first := flags.Int("first", 1, "`number` of the first node, which is part of its name")
	count := flags.Int("nodes", 1, "`number` of nodes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	return Run(ctx, client, *first, *count)
}

// Run runs count fake nodes in a cluster until the context ends, numbered from first. It tolerates a temporarily
// unavailable API server.
func Run(ctx context.Context, client kubernetes.Interface, first, count int) error {
	factory, informer := placedPods(client)
	logs, err := serveLogs(ctx, informer.GetStore())
	if err != nil {
		return fmt.Errorf("serve logs: %w", err)
	}
	names := map[string]bool{}
	var setup errgroup.Group
	setup.SetLimit(podWorkers)
	for i := range count {
		name := nodeName(first + i)
		names[name] = true
		setup.Go(func() error { return registerNode(ctx, client, name, logs.port) })
	}
	if err := setup.Wait(); err != nil {
		return err
	}
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error {
		return reportPods(ctx, client, factory, informer, func(node string) bool { return names[node] })
	})
	running.Go(func() error {
		keepAlive(ctx, client, names)
		return nil
	})
	return running.Wait()
}

// keepAlive renews the leases of nodes until the context ends.
func keepAlive(ctx context.Context, client kubernetes.Interface, names map[string]bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewEvery):
		}
		var renewals errgroup.Group
		renewals.SetLimit(podWorkers)
		for name := range names {
			renewals.Go(func() error {
				err := renewLease(ctx, client, name)
				if err != nil && ctx.Err() == nil {
					fmt.Println(err)
				}
				return err
			})
		}
		_ = renewals.Wait() // errors have been printed, and the next round retries
	}
}
