package gateway

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// TestRetryWaitsForTheStore retries a run, and puts back a dead letter, while the store is temporarily down.
func TestRetryWaitsForTheStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	f := startIn(t, dir)
	for name, retry := range map[string]func(id string) error{
		"run": func(id string) error {
			_, err := f.again(t, id)
			return err
		},
		"letter": func(id string) error {
			_, err := f.client.RetryDeadLetter(t.Context(), connect.NewRequest(&v1.RetryDeadLetterRequest{Run: id, Task: "a"}))
			return err
		},
	} {
		id := f.submit(t, name, "a")
		set(t, id, "a", 1, &v1.Task{State: "dead_letter"})
		end(t, id, "failed")
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		back := time.AfterFunc(time.Second, func() {
			if err := os.Rename(dir+"-away", dir); err != nil {
				t.Error(err)
			}
		})
		defer back.Stop()
		if err := retry(id); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := f.inputOf(t, id).GetGeneration(); got != 1 {
			t.Errorf("%s: the newest generation is %d", name, got)
		}
		end(t, id, "completed")
	}
}

func TestStoreThatStaysAwayIsNamed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	f := startIn(t, dir)
	broken, calls := errors.New("broken"), 0
	call := func(context.Context) error { calls++; return broken }
	if err := f.awaitStore(t.Context(), "do it", call); !errors.Is(err, broken) || calls != 2 {
		t.Errorf("a store that answers: %v after %d calls", err, calls)
	}
	brief, over := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer over()
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	wantCode(t, "a store that comes back too late", f.awaitStore(brief, "do it", hangs), connect.CodeUnavailable)
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := f.awaitStore(ctx, "do it", call)
	wantCode(t, "a store that stays away", err, connect.CodeUnavailable)
	if err == nil || !strings.Contains(err.Error(), "do it: the store did not answer within") || !strings.Contains(err.Error(), "try again when it does") {
		t.Errorf("the error is %v", err)
	}
}

func TestStoreThatComesBackTooLateIsNamed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	f := startIn(t, dir)
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	calls := 0
	call := func(context.Context) error {
		if calls++; calls == 2 {
			if err := os.Rename(dir+"-away", dir); err != nil {
				t.Error(err)
			}
		}
		return errors.New("read an object: 500")
	}
	ctx, cancel := context.WithTimeout(t.Context(), storePause+storePause/2)
	defer cancel()
	err := f.awaitStore(ctx, "do it", call)
	wantCode(t, "a store that comes back in the last pause", err, connect.CodeUnavailable)
	if err == nil || !strings.Contains(err.Error(), "the store did not answer within") {
		t.Errorf("the error is %v", err)
	}
}
