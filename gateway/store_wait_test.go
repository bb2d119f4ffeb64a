package gateway

import (
	"os"
	"path/filepath"
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
			_, err := f.retryRun(t, id)
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
