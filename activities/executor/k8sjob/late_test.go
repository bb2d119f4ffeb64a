package k8sjob

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/activities/executor/k8sjob/jobwatch"
	v1 "switchyard/proto/switchyard/v1"
)

// The watch shows the end of the pod and its removal before the attempt is evaluated again.
func TestPodThatIsRemovedAtOnceHasAnOutcome(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "a", UID: "u", Labels: map[string]string{"managed": "yes"}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "one-x", Namespace: "a", Labels: map[string]string{"managed": "yes", batchv1.JobNameLabel: job.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
	}}
	client, watched := fake.NewClientset(job, pod), make(chan struct{}, 10)
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		watched <- struct{}{}
		return true, w, err
	})
	set := jobwatch.NewSet(client, "managed=yes")
	t.Cleanup(set.Close)
	a := &attempt{told: map[string]bool{}, e: &Executor{}, cluster: &cluster.Cluster{Name: "test", Client: client}, namespace: "a", name: job.Name, uid: job.UID, container: "main"}
	var release func()
	a.watch, release = set.Use("a")
	defer release()
	a.follower = a.watch.Follow(job.Name)
	defer a.follower.Close()
	f := &following{attempt: a, began: time.Now(), log: newPodLog(a)}
	defer f.log.abandon()
	await := func(is func(jobwatch.Snapshot) bool) {
		t.Helper()
		for late := time.After(patience); !is(a.follower.Get()); {
			select {
			case <-a.follower.News:
			case <-late:
				t.Fatalf("the watch shows %+v", a.follower.Get())
			}
		}
	}
	for range 2 {
		<-watched
	}
	await(func(s jobwatch.Snapshot) bool { return s.Job != nil && len(s.Pods) == 1 })
	ended := pod.DeepCopy()
	deleted := metav1.NewTime(time.Now().Add(-time.Minute))
	ended.DeletionTimestamp, ended.Status.Phase = &deleted, corev1.PodFailed
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error", FinishedAt: metav1.Now()},
	}}}
	pods := client.CoreV1().Pods("a")
	if _, err := pods.Update(t.Context(), ended, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(func(s jobwatch.Snapshot) bool { return s.Removed != nil && len(s.Pods) == 0 })
	end, err := f.evaluate(t.Context())
	if err != nil || end == nil || end.Result.Failure == nil || end.Result.Failure.Reason != v1.ReasonDeleted || end.Result.ExitCode != 143 {
		t.Errorf("end %+v, error %v", end, err)
	}
}
