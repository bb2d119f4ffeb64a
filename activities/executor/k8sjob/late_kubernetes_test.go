//go:build kubernetes

package k8sjob

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/dev/kubetest"
	"switchyard/dev/testneeds"
)

// lateCreation delays each creation of a Job by a second, and carries it out even if its context ends before.
type lateCreation struct {
	next http.RoundTripper
	sent func()
}

// RoundTrip implements http.RoundTripper.
func (l lateCreation) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/jobs") {
		return l.next.RoundTrip(r)
	}
	type answer struct {
		response *http.Response
		err      error
	}
	answered := make(chan answer, 1)
	go func() {
		l.sent()
		time.Sleep(time.Second)
		response, err := l.next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
		answered <- answer{response, err}
	}()
	select {
	case a := <-answered:
		return a.response, a.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func TestCancelDeletesAJobWhoseCreationIsOnItsWay(t *testing.T) {
	t.Parallel()
	c := kubetest.Shared(t)
	b := newBench(t, c, Options{})
	sent := make(chan struct{})
	b.open = opener(t, c.Kubeconfig, func(next http.RoundTripper) http.RoundTripper {
		return lateCreation{next, sync.OnceFunc(func() { close(sent) })}
	})
	r := b.another(Options{}).start(b.attempt("late", pretends(map[string]any{kubetest.RunsForAnnotation: "1h"})))
	<-sent
	r.stop(errCancelled)
	if result := r.end(); !result.Stopped {
		t.Errorf("the result is %+v", result)
	}
	time.Sleep(2 * time.Second) // a Job that is created after the deletion exists by then
	testneeds.Await(b, "nothing is left", func() bool { return len(b.jobs())+len(b.pods()) == 0 })
}
