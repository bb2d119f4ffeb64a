package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	k8s "switchyard/activities/executor/k8sjob/cluster"
	"switchyard/dev/kubetest"
	"switchyard/dev/kubetest/program"
)

const (
	// k8sShape is the -shape that measures Kubernetes Jobs. A part of a name after a colon, as in "k8s:jobs", selects
	// the matching measurements.
	k8sShape = "k8s"
	// k8sNodes is the number of fake nodes.
	k8sNodes = 5
	// k8sCluster is the name of the cluster in specs.
	k8sCluster = "bench"
)

// benchK8s runs the Job measurements whose name contains a text. They share a cluster that runs in processes of its
// own.
func benchK8s(ctx context.Context, rounds int, only string) (err error) {
	kubectl, err := program.Find(ctx)
	if err != nil {
		return err
	}
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
	b := &k8sBench{cluster: c, dir: dir, kubectl: kubectl}
	for _, shape := range []struct {
		name    string
		measure func(context.Context, int) error
	}{{"jobs", b.jobs}, {"waiting", b.waiting}, {"one", b.one}} {
		if !strings.Contains(shape.name, only) {
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
	// kubectl is a program whose first argument must be "kubectl".
	kubectl string
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
		ID: fmt.Sprintf("bench-%d", n), Spec: spec, Grace: time.Second,
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
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// callCount counts the calls to an API server, by kind.
type callCount struct {
	mu    sync.Mutex
	kinds map[string]int
}

func (c *callCount) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		c.add(r)
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// add counts a call unless it is a watch or concerns no object, such as a check of the credentials.
func (c *callCount) add(r *http.Request) {
	_, inNamespace, ok := strings.Cut(r.URL.Path, "/namespaces/")
	if !ok || r.URL.Query().Has("watch") {
		return
	}
	// <namespace>/<resource>[/<name>[/<subresource>]]
	parts := strings.Split(inNamespace, "/")
	kind := r.Method + " " + strings.Join(parts[1:min(2, len(parts))], "")
	if len(parts) == 4 {
		kind += "/" + parts[3]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil {
		c.kinds = map[string]int{}
	}
	c.kinds[kind]++
}
