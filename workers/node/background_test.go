package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type answer struct {
			value int
			err   error
		}
		answers := make(chan answer)
		b := &background[int]{every: time.Minute, limit: 10 * time.Second, now: time.Now, read: func(ctx context.Context) (int, error) {
			select {
			case a := <-answers:
				return a.value, a.err
			case <-ctx.Done():
				return 0, errors.New("killed")
			}
		}}
		want := func(when string, value int, count int64, wantErr error) {
			t.Helper()
			synctest.Wait()
			v, n, err := b.latest()
			if v != value || n != count || !errors.Is(err, wantErr) {
				t.Errorf("%s: got %d, %d, %v", when, v, n, err)
			}
		}
		bad := errors.New("bad")
		want("before the first", 0, 0, nil)
		answers <- answer{1, nil}
		b.wait(t.Context())
		want("after it", 1, 1, nil)
		time.Sleep(59 * time.Second)
		want("too early for the next", 1, 1, nil)
		select {
		case answers <- answer{2, nil}:
			t.Error("read again too early")
		default:
		}
		time.Sleep(time.Second)
		want("the second begins", 1, 1, nil)
		answers <- answer{2, nil}
		want("the second", 2, 2, nil)
		time.Sleep(time.Minute)
		b.latest()
		time.Sleep(10 * time.Second)
		want("too slow keeps the figures", 2, 3, context.DeadlineExceeded)
		time.Sleep(time.Minute)
		b.latest()
		answers <- answer{3, bad}
		want("bad", 3, 4, bad)
		if b.wait(t.Context()); b.ended != nil {
			t.Error("something is under way")
		}
	})
}

// TestBackgroundHangs checks that a reading that cannot be stopped delays no other reading, and
// that no second reading starts beside it.
func TestBackgroundHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		reads := 0
		free := make(chan struct{})
		b := &background[int]{every: time.Second, limit: time.Second, now: time.Now, read: func(context.Context) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			if reads++; reads > 1 {
				<-free
			}
			return reads, nil
		}}
		b.latest()
		synctest.Wait()
		for i := range 10 {
			time.Sleep(time.Second)
			if v, _, err := b.latest(); v != 1 || i > 3 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %d s: got %d, %v", i+1, v, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.wait(ctx)
		close(free)
		synctest.Wait()
		time.Sleep(time.Second)
		b.latest()
		synctest.Wait()
		if reads != 3 {
			t.Errorf("%d readings, want one that hung, and those before and after", reads)
		}
	})
}
