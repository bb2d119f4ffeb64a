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

// logPatience is how long to wait for the rest of a log after the program has ended.
const logPatience = 5 * time.Minute

// podLog copies the log of the program to the log of the attempt.
type podLog struct {
	a      *attempt
	filter *podhelper.Reader // nil if there is no helper
	out    io.Writer

	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{} // closed by markEnded
	over   func()        // closes ended
	done   chan struct{} // closed when copying has ended; nil if it never began
	pod    *corev1.Pod   // the pod whose log is copied

	mu       sync.Mutex
	complete bool
	failure  error // from the writer
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

// follow begins to copy the log of a pod unless a copy has begun.
func (l *podLog) follow(pod *corev1.Pod) {
	if l.pod != nil {
		return
	}
	l.pod, l.done = pod, make(chan struct{})
	// A position belongs to one pod.
	prefix := string(pod.UID) + "/"
	position, ok := strings.CutPrefix(l.a.Remote.LogPosition, prefix)
	if !ok {
		position = ""
	}
	mark := func(at string) {
		if l.a.Remote.MarkLog != nil && (l.filter == nil || !l.filter.InFrames() && !l.filter.HasHeld()) {
			l.a.Remote.MarkLog(prefix + at)
		}
	}
	go func() {
		defer close(l.done)
		err := podlog.Follow(l.ctx, l.a.cluster.Client,
			podlog.Pod{Namespace: pod.Namespace, Name: pod.Name, Container: l.a.container}, // pods of a Job have unique names
			podlog.Options{Position: position, Write: l.write, Mark: mark, Ended: l.ended})
		if l.filter != nil {
			err = errors.Join(err, l.filter.Close())
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.complete = err == nil && l.failure == nil
		if err != nil && l.ctx.Err() == nil {
			l.a.notify(fmt.Sprintf("lost the rest of the log: %v", err))
		}
	}()
}

// write passes on a piece of the log. After a write error the log is still read to its end.
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

// markEnded marks the program as ended, so that its log has an end.
func (l *podLog) markEnded() { l.over() }

// await waits until the log is copied completely, or until that is no longer possible.
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

// abandon stops the copying.
func (l *podLog) abandon() {
	l.cancel()
	if l.done != nil {
		<-l.done
	}
}

// err stops the copying and returns the write error of the attempt's log.
func (l *podLog) err() error {
	l.abandon()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// isComplete reports whether the whole log was copied. The caller must have stopped the copying.
func (l *podLog) isComplete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.complete
}
