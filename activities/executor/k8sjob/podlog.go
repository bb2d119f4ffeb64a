package k8sjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"switchyard/activities/executor/k8sjob/podhelper"
	"switchyard/activities/executor/k8sjob/podlog"
)

// logPatience is how long after the end of a program the rest of its log is waited for.
const logPatience = 5 * time.Minute

// podLog copies the log of the program to the log of the attempt.
type podLog struct {
	a      *attempt
	filter *podhelper.Reader // nil: there is no helper
	out    io.Writer

	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{} // closed by end
	over   func()        // closes ended
	done   chan struct{} // closed when nothing is copied any more; nil: nothing ever was
	pod    *corev1.Pod   // whose log it is

	mu       sync.Mutex
	complete bool
	failure  error // of the writer
}

func newPodLog(a *attempt) *podLog {
	l := &podLog{a: a, ended: make(chan struct{}), out: a.Stdout}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.over = sync.OnceFunc(func() { close(l.ended) })
	if l.out == nil {
		l.out = io.Discard
	}
	if a.e.o.HelperImage != "" {
		l.filter = podhelper.NewReader(a.frame(), l.out)
		l.out = l.filter
	}
	return l
}

// follow begins to copy the log of a pod, if it has not yet.
func (l *podLog) follow(pod *corev1.Pod) {
	if l.pod != nil {
		return
	}
	l.pod, l.done = pod, make(chan struct{})
	// A position is of one pod.
	prefix := string(pod.UID) + "/"
	position, ok := strings.CutPrefix(l.a.LogPosition, prefix)
	if !ok {
		position = ""
	}
	mark := func(at string) {
		if l.a.MarkLog != nil && (l.filter == nil || !l.filter.InFrames() && !l.filter.HasHeld()) {
			l.a.MarkLog(prefix + at)
		}
	}
	go func() {
		defer close(l.done)
		err := podlog.Follow(l.ctx, l.a.cluster.Client,
			podlog.Pod{Namespace: pod.Namespace, Name: pod.Name, Container: l.a.container}, // the pods of a Job have names of their own
			podlog.Options{Position: position, Write: l.write, Mark: mark, Ended: l.ended})
		if l.filter != nil {
			err = errors.Join(err, l.filter.Close())
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.complete = err == nil && l.failure == nil
		if err != nil && l.ctx.Err() == nil {
			l.a.notify(fmt.Sprintf("the rest of the log is lost: %v", err))
		}
	}()
}

// write takes a piece of the log. After an error of the log the rest is read nevertheless.
func (l *podLog) write(p []byte) error {
	l.mu.Lock()
	failed := l.failure != nil
	l.mu.Unlock()
	if failed {
		return nil
	}
	if _, err := l.out.Write(p); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failure = fmt.Errorf("write the log: %w", err)
	}
	return nil
}

// end says that the program has ended, so that its log has an end.
func (l *podLog) end() { l.over() }

// await waits until all of the log has been copied, or can no longer be.
func (l *podLog) await(ctx context.Context) {
	if l.done == nil {
		return
	}
	select {
	case <-l.done:
	case <-ctx.Done():
	case <-time.After(logPatience):
		l.a.notify("the rest of the log could not be read")
	}
	l.abandon()
}

// abandon ends the copying.
func (l *podLog) abandon() {
	l.cancel()
	if l.done != nil {
		<-l.done
	}
}

// err returns the error of the log of the attempt. Nothing is copied any more.
func (l *podLog) err() error {
	l.abandon()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// isComplete reports whether all of the log has been copied. Nothing is copied any more.
func (l *podLog) isComplete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.complete
}
