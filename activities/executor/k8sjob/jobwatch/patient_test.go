package jobwatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A call waits for an unavailable API server, is repeated soon after the server is back, and is not repeated if the
// server refuses it.
func TestCallsWaitForAnAPIServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, began, back := &Watch{}, time.Now(), time.Minute
		got, err := patiently(t.Context(), w, func() (string, error) {
			switch away := time.Since(began); {
			case away < back/2:
				return "", errors.New("connection refused")
			case away < back:
				return "", apierrors.NewServiceUnavailable("starting")
			}
			return "list", nil
		})
		if late := time.Since(began) - back; got != "list" || err != nil || late > lastPause {
			t.Errorf("%q, %v, %v after the server was back", got, err, late)
		}
		if w.trouble != nil || w.since.IsZero() {
			t.Errorf("after the call the trouble is %v, since %v", w.trouble, w.since)
		}
		calls := 0
		_, err = patiently(t.Context(), w, func() (string, error) {
			calls++
			return "", apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "", nil)
		})
		if calls != 1 || !apierrors.IsForbidden(err) {
			t.Errorf("%d calls, %v", calls, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := patiently(ctx, w, func() (string, error) { return "", errors.New("away") }); err == nil {
			t.Error("a call outlived its context")
		}
	})
}
