package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	k8s "switchyard/activities/executor/k8sjob/cluster"
	"switchyard/dev/kubetest"
	"switchyard/dev/processes"
)

const (
	// k8sNodes is the number of fake nodes.
	k8sNodes = 5
	// k8sCluster is the name of the cluster in specs.
	k8sCluster = "bench"
)

// benchK8s runs the Job measurements whose name contains a text. They share a cluster that runs in processes of its
// own.
func benchK8s(ctx context.Context, rounds int, part string) (err error) {
	c, err := kubetest.Open(ctx, kubetest.Options{FakeNodes: k8sNodes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	dir, err := os.MkdirTemp("", "switchyard-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &k8sBench{cluster: c, dir: dir}
	for _, shape := range []struct {
		name    string
		measure func(context.Context, int) error
	}{{"jobs", b.jobs}, {"waiting", b.waiting}, {"one", b.one}} {
		if !strings.Contains(shape.name, part) {
			continue
		}
		if err := shape.measure(ctx, rounds); err != nil {
			return fmt.Errorf("%s: %w", shape.name, err)
		}
		fmt.Println()
	}
	return nil
}

// k8sBench is a Kubernetes cluster for measurements.
type k8sBench struct {
	cluster *kubetest.Cluster
	dir     string
	// made counts the attempts, so that each has a unique name.
	made atomic.Int64
}

// open connects to the cluster as a node does.
func (b *k8sBench) open(count *callCount) (*k8s.Clusters, error) {
	o := k8s.Options{}
	if count != nil {
		o.WrapTransport = count.wrap
	}
	return k8s.Open([]k8s.Config{{Name: k8sCluster, File: b.cluster.Kubeconfig}}, o)
}

// attempt returns an attempt that runs `true` in a Job with the given annotations.
func (b *k8sBench) attempt(namespace string, annotations map[string]any) (executor.Attempt, error) {
	n := b.made.Add(1)
	dir := filepath.Join(b.dir, fmt.Sprint(n))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return executor.Attempt{}, err
	}
	input := filepath.Join(dir, "input.json")
	if err := os.WriteFile(input, []byte("{}\n"), 0o600); err != nil {
		return executor.Attempt{}, err
	}
	spec, err := structpb.NewStruct(k8sSpec(namespace, annotations))
	return executor.Attempt{
		ID: fmt.Sprintf("bench-%d", n), Spec: spec, Ending: executor.Ending{Grace: time.Second},
		Identity: executor.Identity{Run: fmt.Sprintf("bench-%d", n), Task: "t", Node: benchNode, Chain: "c", Index: -1, Claim: 1},
		Env:      map[string]string{"SWITCHYARD_INPUT": input, "SWITCHYARD_OUTPUT": filepath.Join(dir, "output")},
	}, err
}

// k8sSpec returns the spec of a task that runs `true`.
func k8sSpec(namespace string, annotations map[string]any) map[string]any {
	return map[string]any{"cluster": k8sCluster, "namespace": namespace, "image": kubetest.BusyboxImage, "command": "true", "annotations": annotations}
}

// clear deletes the Jobs of a namespace and waits until they are gone, so that the next measurement has the cluster to
// itself.
func (b *k8sBench) clear(ctx context.Context, namespace string) error {
	background := metav1.DeletePropagationBackground
	jobs := b.cluster.Client.BatchV1().Jobs(namespace)
	if err := jobs.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{}); err != nil {
		return err
	}
	for {
		pods, err := b.cluster.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(pods.Items) == 0 {
			return err
		}
		if err := processes.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// callCount counts the calls to an API server that concern an object and are no watches.
type callCount struct{ calls atomic.Int64 }

func (c *callCount) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/namespaces/") && !r.URL.Query().Has("watch") {
			c.calls.Add(1)
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
