package k8sjob

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/activities/executor/k8sjob/manifest"
	"switchyard/activities/executor/k8sjob/podstate"
)

const (
	// sweepInterval is the default of Options.SweepInterval.
	sweepInterval = 2 * time.Minute
	// sweepPage bounds the Jobs in one answer of an API server.
	sweepPage = 500
)

// sweep periodically deletes Jobs that their runs no longer want, until ctx ends. A Job must be unwanted in two
// consecutive sweeps, because its result may be on the way.
func (e *Executor) sweep(ctx context.Context) {
	interval := e.o.SweepInterval
	if interval <= 0 {
		interval = sweepInterval
	}
	unwanted := map[string]bool{} // by UID, from the previous sweep
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		now := map[string]bool{}
		for _, name := range e.o.Clusters.Reachable() {
			if c := e.o.Clusters.Get(name); c != nil {
				e.sweepCluster(ctx, c, unwanted, now)
			}
		}
		unwanted = now
	}
}

// sweepCluster deletes the Jobs of a cluster that are unwanted now and were so in the previous sweep, and adds the
// newly unwanted ones to now.
func (e *Executor) sweepCluster(ctx context.Context, c *cluster.Cluster, before, now map[string]bool) {
	own := map[string]bool{}
	for _, a := range e.running() {
		if a.cluster == c {
			own[a.namespace+"/"+a.name] = true
		}
	}
	err := e.eachJob(ctx, c, metav1.NamespaceAll, func(job *batchv1.Job) { e.sweepJob(ctx, c, job, own, before, now) })
	if !apierrors.IsForbidden(err) {
		return
	}
	for _, namespace := range append(e.namespaces(c), c.Namespace) {
		_ = e.eachJob(ctx, c, namespace, func(job *batchv1.Job) { e.sweepJob(ctx, c, job, own, before, now) }) // best effort: the next sweep retries
	}
}

// eachJob calls do for each Job of Switchyard in a namespace.
func (e *Executor) eachJob(ctx context.Context, c *cluster.Cluster, namespace string, do func(*batchv1.Job)) error {
	for more := ""; ; {
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		list, err := c.Client.BatchV1().Jobs(namespace).List(bounded, metav1.ListOptions{
			LabelSelector: selector, Limit: sweepPage, Continue: more,
		})
		cancel()
		if err != nil {
			return err
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if more = list.Continue; more == "" {
			return nil
		}
	}
}

func (e *Executor) sweepJob(ctx context.Context, c *cluster.Cluster, job *batchv1.Job, own, before, now map[string]bool) {
	id, ok := manifest.Identity(job.Annotations)
	over, _, _ := podstate.JobEnd(job)
	isExpiring := over && job.Spec.TTLSecondsAfterFinished != nil
	if !ok || id.Fleet != e.o.Fleet || own[job.Namespace+"/"+job.Name] || job.DeletionTimestamp != nil || isExpiring {
		return
	}
	open, err := e.o.IsOpen(ctx, id)
	if err != nil || open {
		return
	}
	uid := string(job.UID)
	if !before[uid] {
		now[uid] = true
		return
	}
	foreground := metav1.DeletePropagationForeground
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = c.Client.BatchV1().Jobs(job.Namespace).Delete(bounded, job.Name, metav1.DeleteOptions{
		PropagationPolicy: &foreground, Preconditions: metav1.NewUIDPreconditions(uid),
	})
	if err == nil && e.o.Logger != nil {
		e.o.Logger.Info("deleted a Job that its run no longer needs", "cluster", c.Name, "namespace", job.Namespace, "job", job.Name, "run", id.Run, "task", id.Task)
	}
}
