package jobwatch

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// eventsAge is how old a list of events may be to be reused, so that many Jobs that wait for their pods share one
	// list.
	eventsAge = 2 * time.Second
	// eventsTimeout bounds the call that lists events.
	eventsTimeout = 20 * time.Second
)

// eventList caches why the cluster creates no pods for the Jobs of a namespace.
type eventList struct {
	// turn holds a value while no goroutine uses the other fields.
	turn     chan struct{}
	at       time.Time // when the list was read, or the attempt failed
	messages map[types.UID]string
}

func newEventList() *eventList {
	l := &eventList{turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// FailedCreate returns why the cluster creates no pod for a Job, or "" if no event says so. Concurrent calls share one
// call to the API server.
func (w *Watch) FailedCreate(ctx context.Context, job types.UID) string {
	l := w.events
	select {
	case <-l.turn:
	case <-ctx.Done():
		return ""
	}
	defer func() { l.turn <- struct{}{} }()
	if time.Since(l.at) > eventsAge {
		l.messages = failedCreates(ctx, w.client, w.namespace)
		if ctx.Err() == nil { // else the next caller reads the list
			l.at = time.Now()
		}
	}
	return l.messages[job]
}

// failedCreates returns the newest message for each Job whose pod could not be created, or nil if the events cannot be
// read.
func failedCreates(ctx context.Context, client kubernetes.Interface, namespace string) map[types.UID]string {
	bounded, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	list, err := client.CoreV1().Events(namespace).List(bounded, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,reason=FailedCreate"})
	if err != nil {
		return nil
	}
	newest := map[types.UID]*corev1.Event{}
	for i := range list.Items {
		event := &list.Items[i]
		before := newest[event.InvolvedObject.UID]
		if before == nil || before.LastTimestamp.Before(&event.LastTimestamp) {
			newest[event.InvolvedObject.UID] = event
		}
	}
	messages := make(map[types.UID]string, len(newest))
	for job, event := range newest {
		messages[job] = event.Message
	}
	return messages
}
