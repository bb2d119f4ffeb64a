package jobwatch

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// firstPause and lastPause bound the delay between two calls to an unavailable API server, which doubles.
const firstPause, lastPause = 200 * time.Millisecond, 5 * time.Second

// IsAway reports whether a call to an API server may succeed when repeated: the server was not reached, or could not
// serve it.
func IsAway(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return true // a connection error
	}
	code := status.ErrStatus.Code
	return code >= 500 || code == 429 || code == 408
}

// client lists and watches the objects of one kind in a namespace.
type client[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// patient returns a source for an informer that retries while the API server is unavailable. The informer itself would
// wait up to a minute between two calls.
func patient[L runtime.Object](w *Watch, c client[L], selector string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return patiently(ctx, w, func() (runtime.Object, error) { return c.List(ctx, o) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return patiently(ctx, w, func() (watch.Interface, error) { return c.Watch(ctx, o) })
		},
	}
}

// patiently repeats a call until the API server is available or ctx ends.
func patiently[T any](ctx context.Context, w *Watch, call func() (T, error)) (T, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		result, err := call()
		if err == nil {
			w.setTrouble(nil)
		}
		if err == nil || ctx.Err() != nil || !IsAway(err) {
			return result, err
		}
		w.setTrouble(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
