package jobwatch

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestManyJobsWithoutPodsShareAListOfEvents(t *testing.T) {
	t.Parallel()
	client, _ := newClient()
	set := NewSet(client, "managed=yes")
	t.Cleanup(set.Close)
	w, release := set.Use("a")
	defer release()
	const jobs = 20
	for job := range jobs {
		for age, text := range []string{"newest", "old"} {
			event := &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", text, job), Namespace: "a"},
				InvolvedObject: corev1.ObjectReference{UID: types.UID(fmt.Sprint(job))}, Reason: "FailedCreate",
				Message: fmt.Sprint(text, job), LastTimestamp: metav1.NewTime(time.Now().Add(-time.Duration(age) * time.Minute)),
			}
			if _, err := client.CoreV1().Events("a").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A machine that stalls for a while may need a second list.
	began := time.Now()
	var group sync.WaitGroup
	for job := range jobs {
		group.Go(func() {
			if got, want := w.FailedCreate(t.Context(), types.UID(fmt.Sprint(job))), fmt.Sprint("newest", job); got != want {
				t.Errorf("Job %d: %q, want %q", job, got, want)
			}
		})
	}
	group.Wait()
	if got := w.FailedCreate(t.Context(), "another"); got != "" {
		t.Errorf("a Job without an event has %q", got)
	}
	lists := 0
	for _, action := range client.Actions() {
		if action.Matches("list", "events") {
			lists++
		}
	}
	if limit := 1 + int(time.Since(began)/eventsAge); lists == 0 || lists > limit {
		t.Errorf("%d lists of events were read, want 1 to %d", lists, limit)
	}
}
