package embedded

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	// helperEnv names the database file for the helper process.
	helperEnv   = "SWITCHYARD_EMBEDDED_TEST_DB"
	helperReady = "timer started"
	survivor    = "survivor"
)

// helperMain starts a server on the file and a workflow on the server. It prints a line when the workflow waits for its
// timer, and then blocks until it is killed.
func helperMain(file string) {
	if err := help(context.Background(), file); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	// Nothing references the server any more, and its lock must still hold.
	runtime.GC()
	fmt.Println(helperReady)
	select {}
}

// help returns once the workflow waits for its timer.
func help(ctx context.Context, file string) error {
	s, err := Start(ctx, Options{DBFile: file})
	if err != nil {
		return err
	}
	c, err := client.Dial(client.Options{
		HostPort:  s.Address(),
		Namespace: s.Namespace(),
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return err
	}
	w := worker.New(c, testQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(sleeper, workflow.RegisterOptions{Name: "sleeper"})
	if err := w.Start(); err != nil {
		return err
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: survivor, TaskQueue: testQueue}, "sleeper", time.Second)
	if err != nil {
		return err
	}
	history := c.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return err
		}
		if event.GetEventType() == enums.EVENT_TYPE_TIMER_STARTED {
			return nil
		}
	}
	return fmt.Errorf("no timer in the history")
}

// startHelper runs this test binary as another process and returns once its workflow waits.
func startHelper(t *testing.T, file string) *exec.Cmd {
	t.Helper()
	helper := exec.CommandContext(t.Context(), os.Args[0])
	helper.Env = append(os.Environ(), helperEnv+"="+file)
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == helperReady {
			return helper
		}
		t.Log("helper:", lines.Text())
	}
	t.Fatalf("helper: %v", helper.Wait())
	return nil
}

func TestKilledProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "killed.db")
	helper := startHelper(t, file)

	_, err := Start(t.Context(), Options{DBFile: file})
	if want := fmt.Sprintf("killed.db is in use by another process (pid %d)", helper.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("second process on the file: got %v, want %q", err, want)
	}

	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait() // the process was killed

	s := startTest(t, Options{DBFile: file})
	c := dialTest(t, s)
	startWorker(t, c)
	if err := c.SignalWorkflow(t.Context(), survivor, "", "go", "still here"); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := c.GetWorkflow(t.Context(), survivor, "").Get(t.Context(), &got); err != nil || got != "still here" {
		t.Errorf("after the restart: %q, %v", got, err)
	}
}

func TestReopen(t *testing.T) {
	t.Parallel()
	// The name has characters that are special in the connection's URI, and the folder has a second name.
	folder := t.TempDir()
	file := filepath.Join(folder, "a b?c#d%20.db")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	first, err := Start(t.Context(), Options{DBFile: file, Retention: 48 * time.Hour,
		SearchAttributes: map[string]enums.IndexedValueType{"State": enums.INDEXED_VALUE_TYPE_KEYWORD}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{DBFile: filepath.Join(link, filepath.Base(file))}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second server on the file: %v", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	header, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// According to https://www.sqlite.org/fileformat.html#file_format_version_numbers, 2 means write-ahead logging.
	if header[18] != 2 || header[19] != 2 {
		t.Errorf("file format %d, %d: not in WAL mode", header[18], header[19])
	}
	if log, err := os.Stat(file + "-wal"); err == nil && log.Size() > 0 {
		t.Errorf("%d bytes left in the log after Stop", log.Size())
	}

	attributes := map[string]enums.IndexedValueType{
		"State": enums.INDEXED_VALUE_TYPE_KEYWORD,
		"Count": enums.INDEXED_VALUE_TYPE_INT,
	}
	s := startTest(t, Options{DBFile: file, Retention: 72 * time.Hour, SearchAttributes: attributes})
	checkNamespace(t, dialTest(t, s), defaultNamespace, 72*time.Hour, attributes)
}
