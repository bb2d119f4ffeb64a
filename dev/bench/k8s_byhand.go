package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/activities/executor/k8sjob/manifest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/podspec"
)

// manyByHand runs Jobs with the minimal code that a Go programmer would write for this purpose: a client that creates
// the Jobs and watches them to their ends. The Jobs are those of the executor. There are no Secrets, no logs, and
// nothing deletes the Jobs.
func (b *k8sBench) manyByHand(ctx context.Context, namespace string) (used, took time.Duration, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", b.cluster.Kubeconfig)
	if err != nil {
		return 0, 0, err
	}
	config.QPS, config.ContentType = -1, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, 0, err
	}
	made := make([]*batchv1.Job, manyJobs)
	for i := range made {
		if made[i], err = b.jobByHand(namespace); err != nil {
			return 0, 0, err
		}
	}
	jobs := client.BatchV1().Jobs(namespace)
	used, took, err = measured(ctx, func() error {
		now, err := jobs.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		// The retry watcher resumes when the API server ends a watch, as it does under load.
		watch, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: jobs.Watch})
		if err != nil {
			return err
		}
		defer watch.Stop()
		open := map[string]bool{}
		for _, job := range made {
			open[job.Name] = true
		}
		created := make(chan error, 1)
		go func() {
			created <- each(len(made), func(i int) error {
				_, err := jobs.Create(ctx, made[i], metav1.CreateOptions{})
				return err
			})
		}()
		for event := range watch.ResultChan() {
			job, ok := event.Object.(*batchv1.Job)
			if !ok {
				return fmt.Errorf("the watch shows %T", event.Object)
			}
			for _, condition := range job.Status.Conditions {
				if condition.Type == batchv1.JobComplete {
					delete(open, job.Name)
				}
			}
			if len(open) == 0 {
				return <-created
			}
		}
		return cmp.Or(ctx.Err(), errors.New("the watch has ended"))
	})
	return used, took, errors.Join(err, b.clear(ctx, namespace))
}

// jobByHand returns the Job of an attempt, as the executor would create it.
func (b *k8sBench) jobByHand(namespace string) (*batchv1.Job, error) {
	a, err := b.attempt(namespace, nil)
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(a.Spec)
	if err != nil {
		return nil, err
	}
	var spec v1.K8SJobSpec
	if err := protojson.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	template, _ := podspec.Template(&spec) // the executor has already accepted the same spec
	job, _, err := manifest.Build(a, template, &spec, manifest.Options{Namespace: namespace, Holder: benchNode + "/hand"})
	return job, err
}
