package k8sjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob/manifest"
)

// errGone reports that the Job no longer exists.
var errGone = errors.New("the Job is gone")

// begin creates the Job, or takes over the Job of an earlier dispatch, and then creates its Secret, which the Job owns.
// The pod waits for the Secret.
func (a *attempt) begin(ctx context.Context) error {
	job, err := a.makeOrFind(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.uid = job.UID
	a.mu.Unlock()
	return a.makeSecret(ctx, job)
}

func (a *attempt) makeOrFind(ctx context.Context) (*batchv1.Job, error) {
	jobs := a.cluster.Client.BatchV1().Jobs(a.namespace)
	if a.mayExist = a.Remote.Continues; a.Remote.Continues {
		job, err := a.takeOver(ctx)
		if apierrors.IsNotFound(err) {
			return nil, errGone
		}
		return job, err
	}
	if err := a.endFormer(ctx); err != nil {
		return nil, err
	}
	var job *batchv1.Job
	err := a.retryWhileAway(ctx, func(context.Context) (err error) {
		// A request whose context is cancelled may be carried out later, after the deletion of the Job.
		sent, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		job, err = jobs.Create(sent, a.job, metav1.CreateOptions{})
		a.mayExist = a.mayExist || !isUnsent(err)
		return err
	})
	if err == nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if apierrors.IsAlreadyExists(err) { // created by an earlier dispatch, or by a call whose answer was lost
		job, err = a.takeOver(ctx)
		if apierrors.IsNotFound(err) {
			return nil, errGone
		}
		return job, err
	}
	if err == nil {
		a.notify(fmt.Sprintf("Job %s in namespace %s of cluster %s", a.name, a.namespace, a.cluster.Name))
	}
	return job, err
}

// endFormer deletes the Job that this attempt had before the task was put back, and waits until its pod is gone: the
// task may have been cancelled while no node watched that Job.
func (a *attempt) endFormer(ctx context.Context) error {
	if a.Identity.PutBacks == 0 {
		return nil
	}
	id := a.Identity
	id.PutBacks--
	former := &attempt{told: map[string]bool{}, Attempt: a.Attempt, e: a.e, cluster: a.cluster, namespace: a.namespace, name: manifest.Name(id), watch: a.watch}
	former.follower = a.watch.Follow(former.name)
	defer former.follower.Close()
	former.remove(ctx)
	for again := time.NewTicker(goneAgain); !former.isGone(ctx); {
		a.reportWaiting(fmt.Sprintf("Job %s, from before the task was put back, is being deleted", former.name))
		select {
		case <-former.follower.News:
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return context.Cause(ctx)
		}
	}
	a.reportWaiting("")
	return nil
}

// takeOver makes this dispatch the holder of the existing Job. It returns errTakenOver if a later dispatch holds it.
func (a *attempt) takeOver(ctx context.Context) (taken *batchv1.Job, err error) {
	jobs := a.cluster.Client.BatchV1().Jobs(a.namespace)
	for {
		var job *batchv1.Job
		err := a.retryWhileAway(ctx, func(ctx context.Context) (err error) {
			job, err = jobs.Get(ctx, a.name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return nil, err
		}
		of, ok := manifest.Identity(job.Annotations)
		if own := attemptOf(a.Identity); !ok || attemptOf(of) != own {
			return nil, badSpec("Job %s in namespace %s of cluster %s exists and does not belong to this attempt", a.name, a.namespace, a.cluster.Name)
		}
		claim, _, ok := manifest.ParseClaim(job.Annotations[manifest.AnnotationClaim])
		switch {
		case ok && claim > a.Identity.Claim:
			return nil, errTakenOver
		case job.Annotations[manifest.AnnotationClaim] == a.claim:
			return job, nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": job.ResourceVersion, "annotations": map[string]string{manifest.AnnotationClaim: a.claim},
		}})
		if err != nil {
			return nil, err
		}
		err = a.retryWhileAway(ctx, func(ctx context.Context) (err error) {
			job, err = jobs.Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil {
			a.notify(fmt.Sprintf("node %s continues with Job %s in namespace %s of cluster %s", a.Identity.Node, a.name, a.namespace, a.cluster.Name))
		}
		return job, err
	}
}

// attemptOf returns an identity without the fields that differ between dispatches of an attempt.
func attemptOf(id executor.Identity) executor.Identity {
	id.Node, id.Claim = "", 0
	return id
}

// makeSecret creates the Secret of the Job if it is missing. A Secret from an earlier dispatch has the same content.
func (a *attempt) makeSecret(ctx context.Context, job *batchv1.Job) error {
	if a.secret == nil || job.DeletionTimestamp != nil {
		return nil
	}
	manifest.Own(a.secret, job)
	err := a.retryWhileAway(ctx, func(ctx context.Context) error {
		_, err := a.cluster.Client.CoreV1().Secrets(a.namespace).Create(ctx, a.secret, metav1.CreateOptions{})
		return err
	})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	if ctx.Err() == nil { // without the Secret the pod would wait forever
		a.remove(context.WithoutCancel(ctx))
	}
	return err
}

// goneText returns an error for a missing Job, with the cause if it is known.
func (a *attempt) goneText(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	ns, err := a.cluster.Client.CoreV1().Namespaces().Get(bounded, a.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && ns.Status.Phase == corev1.NamespaceTerminating {
		return fmt.Errorf("Job %[3]s was deleted with namespace %[1]s of cluster %[2]s", a.namespace, a.cluster.Name, a.name)
	}
	return fmt.Errorf("Job %s in namespace %s of cluster %s was deleted by another party", a.name, a.namespace, a.cluster.Name)
}
