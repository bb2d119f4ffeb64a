package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/k8sjob"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
)

// oneJobs is the number of sequential Jobs in a round.
const oneJobs = 5

// one measures a single Job of `true`, alternating between the executor and a whole Switchyard.
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
	y, err := openCluster(ctx, func(c *workers.NodeConfig) {
		c.Executors, c.Clusters = append(c.Executors, e), clusters.Reachable
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.close()) }()
	var job, run []time.Duration
	for i := range (rounds + 1) * oneJobs {
		a, err := b.attempt(namespace, nil)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := runJob(ctx, e, a); err != nil {
			return err
		}
		alone := time.Since(began)
		whole, err := b.runOne(ctx, y, namespace)
		if err != nil {
			return err
		}
		if i >= oneJobs { // the first round warms the caches
			job, run = append(job, alone), append(run, whole)
		}
	}
	fmt.Printf("one Job of `true`: %s by the executor, %s as a run of one task\n", inMs(median(job)), inMs(median(run)))
	return b.clear(ctx, namespace)
}

// runOne runs a workflow with one Job, and returns how long it took.
func (b *k8sBench) runOne(ctx context.Context, y *cluster, namespace string) (time.Duration, error) {
	spec, err := structpb.NewStruct(k8sSpec(namespace, nil))
	if err != nil {
		return 0, err
	}
	_, took, err := y.run(ctx, oneTask("job", &v1.TaskDefinition{Type: v1.TypeK8sJob, Spec: spec, Resources: &v1.Resources{Cores: proto.Float64(0)}}))
	return took, err
}
