package k8sjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob/jobwatch"
	"switchyard/activities/executor/k8sjob/manifest"
	"switchyard/activities/executor/k8sjob/podstate"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// lookAgain is the interval of looking at a Job while its watch is silent.
	lookAgain = 5 * time.Second
	// newJob is how long the watch may take to show a new Job.
	newJob = 5 * time.Second
	// podPatience is how long to wait for the final status of a pod after its Job is over, or its program has ended.
	podPatience = 30 * time.Second
)

// follow waits until the Job ends and returns its result.
func (a *attempt) follow(ctx context.Context) (executor.Result, error) {
	f := &following{attempt: a, began: time.Now(), log: newPodLog(a)}
	defer f.log.abandon()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		end, err := f.evaluate(ctx)
		switch {
		case errors.Is(err, errTakenOver):
			return takenOver(), nil
		case err != nil:
			return executor.Result{}, err
		case end != nil:
			a.reportWaiting("")
			return f.finish(ctx, end)
		}
		select {
		case <-a.follower.News:
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), executor.ErrLetGo) {
				return stopped(), nil
			}
			return f.stop(ctx), f.log.err()
		}
	}
}

// following is the observed state of the Job.
type following struct {
	*attempt
	began time.Time
	log   *podLog
	// seen reports whether the watch has shown the Job.
	seen bool
	// pod is the name of the pod, or "" if the watch has not shown one.
	pod string
	// failsSince is when the pod began to fail to start, or zero if it does not fail; failure is the reason.
	failsSince time.Time
	failure    string
	// overSince is when the Job was first seen to be over; endedSince is when the program was first seen to have ended.
	overSince, endedSince time.Time
	askedAt               time.Time // when events were last requested
	events                string    // why the Job has no pod, according to its events
	// trouble is why the Job cannot be watched, or "".
	trouble string
	// isLeft reports whether something still runs, or may start, although the program has ended or failed to start.
	isLeft bool
}

// evaluate evaluates the state of the Job. It returns how the program ended, or nil if it has not.
func (f *following) evaluate(ctx context.Context) (*podstate.End, error) {
	s := f.follower.Get()
	f.trouble = ""
	if s.Trouble != nil {
		f.trouble = fmt.Sprintf("the Jobs and pods of namespace %s of cluster %s cannot be watched: %v", f.namespace, f.cluster.Name, s.Trouble)
		if !s.Synced {
			f.reportWaiting(f.trouble)
		}
	}
	if s.Job == nil || s.Job.UID != f.uid {
		if f.seen || s.Synced && time.Since(f.began) > newJob {
			return f.handleMissingJob(ctx)
		}
		return nil, nil
	}
	f.seen = true
	if claim, _, ok := manifest.ParseClaim(s.Job.Annotations[manifest.AnnotationClaim]); ok && claim > f.Identity.Claim {
		return nil, errTakenOver
	}
	over, reason, message := podstate.JobEnd(s.Job)
	if over && f.overSince.IsZero() {
		f.overSince = time.Now()
	}
	pod := f.podOf(s)
	if pod == nil {
		return f.withoutPod(ctx, s.Job, over, reason, message)
	}
	if pod.Name != f.pod {
		f.pod = pod.Name
		f.Locate(f.workload(f.pod))
	}
	if podstate.HasStarted(pod, f.container) {
		f.log.follow(pod)
	}
	if end := podstate.EndOf(pod, f.container, time.Now()); end != nil {
		f.log.markEnded()
		if f.endedSince.IsZero() {
			f.endedSince = time.Now()
		}
		isPodOver := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !isPodOver && time.Since(f.endedSince) < podPatience {
			return nil, nil // the pod's final status is pending, or other containers are ending
		}
		f.isLeft = !isPodOver
		if reason == batchv1.JobReasonDeadlineExceeded && end.Result.ExitCode != 0 {
			end.Result.Failure = &executor.Failure{Reason: v1.ReasonTimeout, Err: fmt.Errorf("the cluster ended Job %s: %s", f.name, message)}
		}
		return end, nil
	}
	return f.notStarted(ctx, s.Job, pod)
}

// podOf returns the pod of the Job, or nil if it has none. A pod that was removed counts if its last state shows how its
// program ended.
func (f *following) podOf(s jobwatch.Snapshot) *corev1.Pod {
	switch {
	case len(s.Pods) > 0 && metav1.IsControlledBy(s.Pods[0], s.Job):
		return s.Pods[0]
	case len(s.Pods) == 0 && s.Removed != nil && metav1.IsControlledBy(s.Removed, s.Job) && podstate.EndOf(s.Removed, f.container, time.Now()) != nil:
		return s.Removed
	}
	return nil
}

// handleMissingJob handles a Job that the watch does not show.
func (f *following) handleMissingJob(ctx context.Context) (*podstate.End, error) {
	job, err := f.cluster.Client.BatchV1().Jobs(f.namespace).Get(ctx, f.name, metav1.GetOptions{})
	if err == nil && job.UID == f.uid || err != nil && !apierrors.IsNotFound(err) {
		return nil, nil // the watch is late, or the API server is unavailable
	}
	return &podstate.End{Result: f.failed(v1.ReasonDeleted, f.goneText(ctx))}, nil
}

// withoutPod handles a Job that has no pod.
func (f *following) withoutPod(ctx context.Context, job *batchv1.Job, over bool, reason, message string) (*podstate.End, error) {
	switch {
	case over && time.Since(f.overSince) > podPatience:
		// The pod was removed before its status was seen.
		if reason == batchv1.JobReasonDeadlineExceeded {
			return &podstate.End{Result: f.failed(v1.ReasonTimeout, fmt.Errorf("the cluster ended Job %s: %s", f.name, message))}, nil
		}
		return &podstate.End{Result: f.failed(v1.ReasonDeleted, fmt.Errorf("the pod of Job %s is gone, so its outcome is unknown", f.name))}, nil
	case over || job.DeletionTimestamp != nil:
		return nil, nil
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		f.reportWaiting("Job " + f.name + " is suspended")
		f.failsSince = time.Time{}
		return nil, nil
	case time.Since(f.began) < podlessQuiet || time.Since(f.askedAt) < askEventsEvery:
	default:
		f.askedAt = time.Now()
		if f.events = f.watch.FailedCreate(ctx, job.UID); f.events != "" {
			f.events = fmt.Sprintf("the cluster cannot create a pod for Job %s: %s", f.name, f.events)
		}
	}
	return f.recordStartFailure(f.events, v1.ReasonBadSpec)
}

const (
	// podlessQuiet is how long a Job may have no pod before its events are read; askEventsEvery is how often they are
	// read after that.
	podlessQuiet, askEventsEvery = 3 * time.Second, 15 * time.Second
)

// notStarted handles a pod whose program has not ended and may not have started.
func (f *following) notStarted(_ context.Context, job *batchv1.Job, pod *corev1.Pod) (*podstate.End, error) {
	wait := podstate.WaitOf(pod)
	if wait.IsFailure {
		return f.recordStartFailure(wait.Text, v1.ReasonStartFailed)
	}
	f.failsSince = time.Time{}
	if wait.Text == "" && pod.DeletionTimestamp != nil && job.DeletionTimestamp == nil {
		wait.Text = "pod " + pod.Name + " is being deleted"
	}
	f.reportWaiting(cmp.Or(f.trouble, wait.Text))
	return nil, nil
}

// recordStartFailure records that the pod cannot start at present. An empty text means that it is only not there yet. After
// StartTimeout fails ends the attempt.
func (f *following) recordStartFailure(text, reason string) (*podstate.End, error) {
	if text == "" {
		return nil, nil
	}
	if f.failsSince.IsZero() {
		f.failsSince = time.Now()
	}
	f.failure = text
	f.reportWaiting(text)
	if time.Since(f.failsSince) < f.e.o.StartTimeout {
		return nil, nil
	}
	f.isLeft = true
	return &podstate.End{Result: f.failed(reason, fmt.Errorf("%s; gave up after %v", f.failure, f.e.o.StartTimeout))}, nil
}

// finish ends an attempt whose program has ended. It reads the log and the output, and stops what is left running.
func (f *following) finish(ctx context.Context, end *podstate.End) (executor.Result, error) {
	f.markEnding()
	r := end.Result
	if end.Exited {
		f.log.await(ctx)
		if errors.Is(context.Cause(ctx), executor.ErrLetGo) {
			return stopped(), nil // the next node finds what is not recorded
		}
		if r.Failure == nil && r.ExitCode == 0 {
			if err := f.keepFiles(end.Message); err != nil {
				r.Failure = &executor.Failure{Reason: v1.ReasonOutput, Err: err}
			}
		}
	}
	if f.isLeft {
		r = f.attempt.stop(ctx, r)
	}
	return r, f.log.err()
}

// stop ends an attempt that is no longer wanted. The log receives the program's last output.
func (f *following) stop(ctx context.Context) executor.Result {
	f.markEnding()
	r := f.attempt.stop(ctx, stopped())
	f.log.markEnded()
	f.log.await(context.WithoutCancel(ctx))
	return r
}

// markEnding marks the attempt as ending, so that it can no longer be paused.
func (a *attempt) markEnding() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ending = true
}
