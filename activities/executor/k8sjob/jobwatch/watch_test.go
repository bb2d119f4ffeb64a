package jobwatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// until waits until the snapshot of a follower meets a condition. It checks after each of the follower's news.
func until(t *testing.T, f *Follower, is func(Snapshot) bool) {
	t.Helper()
	for late := time.After(time.Minute); !is(f.Get()); {
		select {
		case <-f.News:
		case <-late:
			t.Fatalf("it shows %+v", f.Get())
		}
	}
}

func podOf(job, name string, made time.Time) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "a", Labels: map[string]string{"managed": "yes", batchv1.JobNameLabel: job}, CreationTimestamp: metav1.NewTime(made),
	}}
}

// newClient returns a client, and a channel that receives a value for each watch once it sees all later changes.
func newClient() (*fake.Clientset, <-chan struct{}) {
	client, watched := fake.NewClientset(), make(chan struct{}, 10)
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		watched <- struct{}{}
		return true, w, err
	})
	return client, watched
}

func TestFollowersSeeTheirJobAndItsPods(t *testing.T) {
	t.Parallel()
	client, watched := newClient()
	set := NewSet(client, "managed=yes")
	t.Cleanup(set.Close)
	w, release := set.Use("a")
	defer release()
	again, releaseAgain := set.Use("a")
	if again != w {
		t.Error("one namespace has two watches")
	}
	releaseAgain()
	first, other := w.Follow("one"), w.Follow("two")
	defer first.Close()
	defer other.Close()
	for range 2 {
		<-watched
	}
	until(t, first, func(s Snapshot) bool { return s.Synced })

	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "a", Labels: map[string]string{"managed": "yes"}}}
	if _, err := client.BatchV1().Jobs("a").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, first, func(s Snapshot) bool { return s.Job != nil })
	at := time.Unix(1000, 0)
	for i, name := range []string{"older", "newer"} {
		if _, err := client.CoreV1().Pods("a").Create(t.Context(), podOf("one", name, at.Add(time.Duration(i)*time.Second)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, first, func(s Snapshot) bool { return len(s.Pods) == 2 && s.Pods[0].Name == "newer" })
	if s := other.Get(); s.Job != nil || len(s.Pods) > 0 {
		t.Errorf("another Job's follower sees %+v", s)
	}
	if err := client.CoreV1().Pods("a").Delete(t.Context(), "newer", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, first, func(s Snapshot) bool { return len(s.Pods) == 1 && s.Removed != nil && s.Removed.Name == "newer" })
	if s := other.Get(); s.Removed != nil {
		t.Errorf("another Job's follower has seen the removal of pod %s", s.Removed.Name)
	}
	if err := client.BatchV1().Jobs("a").Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, first, func(s Snapshot) bool { return s.Job == nil })
}

func TestWatchesEndSomeTimeAfterTheirLastUse(t *testing.T) {
	t.Parallel()
	set := NewSet(fake.NewClientset(), "managed=yes")
	t.Cleanup(set.Close)
	w, release := set.Use("a")
	set.drop("a", w)
	if len(set.Namespaces()) != 1 {
		t.Fatal("a watch that is used was ended")
	}
	release()
	set.drop("a", w) // too early
	if len(set.Namespaces()) != 1 {
		t.Fatal("a watch was ended at once")
	}
	set.mu.Lock()
	w.usedAt = time.Now().Add(-2 * idle)
	set.mu.Unlock()
	set.drop("a", w)
	if len(set.Namespaces()) != 0 {
		t.Fatal("a watch that nothing uses was kept")
	}
	if next, releaseNext := set.Use("a"); next == w {
		t.Error("a watch that was ended is used again")
	} else {
		releaseNext()
	}
}
