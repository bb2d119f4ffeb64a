package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/k8sjob"
	"switchyard/dev/kubetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
)

// oneJobs is the number of sequential Jobs in a round.
const oneJobs = 5

// one measures a single Job of `true`, alternating between the executor, a whole Switchyard, and kubectl.
func (b *k8sBench) one(ctx context.Context, rounds int) (err error) {
	namespace, err := b.cluster.MakeNamespace(ctx)
	if err != nil {
		return err
	}
	clusters, err := b.open(nil)
	if err != nil {
		return err
	}
	defer clusters.Close()
	e := k8sjob.New(k8sjob.Options{Clusters: clusters})
	defer e.Close()
	y, err := openCluster(ctx, false, func(c *workers.NodeConfig) {
		c.Executors, c.Clusters = append(c.Executors, e), clusters.Reachable
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.close()) }()
	ways := []struct {
		name string
		run  func() error
	}{
		{"executor", func() error {
			a, err := b.attempt(namespace, nil)
			if err != nil {
				return err
			}
			return runJob(ctx, e, a)
		}},
		{"a run of one task", func() error { return b.runOne(ctx, y, namespace) }},
		{"`kubectl create job` and `kubectl wait`", func() error { return b.kubectlOne(ctx, namespace) }},
	}
	took := make([][]time.Duration, len(ways))
	for i := range (rounds + 1) * oneJobs {
		for w, way := range ways {
			began := time.Now()
			if err := way.run(); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			if i >= oneJobs { // the first round warms the caches
				took[w] = append(took[w], time.Since(began))
			}
		}
	}
	fmt.Println("One Job of `true`; to reach: 200 ms more than kubectl.\n\n| | took | lowest and highest | more than kubectl |\n|---|--:|--:|--:|")
	kubectl := median(took[len(took)-1])
	for w, way := range ways {
		middle := median(took[w])
		fmt.Printf("| %s | %s | %s to %s | %s |\n", way.name, inMs(middle), inMs(slices.Min(took[w])), inMs(slices.Max(took[w])), inMs(middle-kubectl))
	}
	return b.clear(ctx, namespace)
}

func inMs(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// runOne runs a workflow with one Job.
func (b *k8sBench) runOne(ctx context.Context, y *cluster, namespace string) error {
	spec, err := structpb.NewStruct(k8sSpec(namespace, nil))
	if err != nil {
		return err
	}
	status, _, err := y.run(ctx, &v1.Definition{Name: "job", Tasks: map[string]*v1.TaskDefinition{
		"t": {Type: v1.TypeK8sJob, Spec: spec, Resources: &v1.Resources{Cores: proto.Float64(0)}},
	}})
	if err != nil {
		return err
	}
	if task := status.GetRun().GetTasks()["t"]; task.GetState() != v1.TaskCompleted {
		return fmt.Errorf("the task is %s: %s", task.GetState(), task.GetError())
	}
	return nil
}

// kubectlOne runs a Job with kubectl.
func (b *k8sBench) kubectlOne(ctx context.Context, namespace string) error {
	name := fmt.Sprintf("kubectl-%d", b.made.Add(1))
	for _, args := range [][]string{
		{"create", "job", name, "--image=" + kubetest.BusyboxImage, "--", "true"},
		{"wait", "--for=condition=complete", "--timeout=60s", "job/" + name},
	} {
		args = append([]string{"kubectl", "--kubeconfig", b.cluster.Kubeconfig, "--namespace", namespace}, args...)
		if out, err := exec.CommandContext(ctx, b.kubectl, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl: %w: %s", err, out)
		}
	}
	return nil
}
