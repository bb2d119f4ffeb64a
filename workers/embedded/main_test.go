package embedded

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"

	"switchyard/dev/testneeds"
)

const testQueue = "test"

// TestMain also runs the process that TestKilledProcess kills.
func TestMain(m *testing.M) {
	if file := os.Getenv(helperEnv); file != "" {
		helperMain(file)
		return
	}
	// Most tests wait for their servers.
	testneeds.Parallel(4)
	testneeds.NoLeaks(m,
		// These goroutines of the server's library outlive a stopped server: connections between its services, some of
		// which try to reconnect, and connections to its store.
		goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"),
		goleak.IgnoreAnyFunction("google.golang.org/grpc.(*addrConn).resetTransportAndUnlock"),
		// A connection may have reconnected, because the port now belongs to another process.
		goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/transport.(*http2Client).reader"),
		goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/transport.(*http2Client).keepalive"),
		goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/transport.(*loopyWriter).run"),
		goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"),
	)
}

// records collects log records of one level and above.
type records struct {
	slog.Handler
	mu   sync.Mutex
	text []string
}

func newRecords() *records { return &records{Handler: slog.DiscardHandler} }

func (r *records) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (r *records) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *records) Handle(_ context.Context, record slog.Record) error {
	text := record.Level.String() + " " + record.Message
	record.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, text)
	return nil
}

func (r *records) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text
}

// unexpected returns the records of anything but time-outs, which a busy machine may cause.
func (r *records) unexpected() []string {
	return slices.DeleteFunc(slices.Clone(r.all()), func(text string) bool {
		return strings.Contains(text, "deadline exceeded") || strings.Contains(text, "timeout") || strings.Contains(text, "timed out")
	})
}

// startTest starts a server that stops with the test.
func startTest(tb testing.TB, opts Options) *Server {
	tb.Helper()
	s, err := Start(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func dialTest(tb testing.TB, s *Server) client.Client {
	tb.Helper()
	c, err := client.Dial(client.Options{
		HostPort:  s.Address(),
		Namespace: s.Namespace(),
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// noop does nothing. The chain runs it as its activity.
func noop(context.Context) error { return nil }

// chain runs n activities one after the other.
func chain(ctx workflow.Context, n int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:   time.Minute,
		DisableEagerExecution: true,
	})
	for range n {
		if err := workflow.ExecuteActivity(ctx, "noop").Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// sleeper waits for a timer, then for a signal, and returns the value of the signal.
func sleeper(ctx workflow.Context, wait time.Duration) (string, error) {
	if err := workflow.Sleep(ctx, wait); err != nil {
		return "", err
	}
	var word string
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, &word)
	return word, nil
}

func startWorker(tb testing.TB, c client.Client) {
	tb.Helper()
	w := worker.New(c, testQueue, worker.Options{})
	w.RegisterActivityWithOptions(noop, activity.RegisterOptions{Name: "noop"})
	w.RegisterWorkflowWithOptions(chain, workflow.RegisterOptions{Name: "chain"})
	w.RegisterWorkflowWithOptions(sleeper, workflow.RegisterOptions{Name: "sleeper"})
	if err := w.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.Stop)
}

// execute runs a workflow to its end.
func execute(tb testing.TB, c client.Client, id, name string, args ...any) {
	tb.Helper()
	run, err := c.ExecuteWorkflow(tb.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: testQueue}, name, args...)
	if err != nil {
		tb.Fatal(err)
	}
	if err := run.Get(tb.Context(), nil); err != nil {
		tb.Fatal(err)
	}
}
