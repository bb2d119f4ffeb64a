package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// serverLogger writes the Temporal server's errors and warnings to a slog.Logger, two levels lower, because most of the
// server's errors are calls that it retries. It is safe for concurrent use.
type serverLogger struct {
	out *slog.Logger
	// building is true while guard recovers the panic of Fatal.
	building *atomic.Bool
	// stopping lowers every record to debug: services that stop one after the other log errors about each other.
	stopping *atomic.Bool
	faults   *faultWatch
}

var _ log.Logger = serverLogger{}

// newServerLogger returns the logger of a server with a database file, or "" for a database in memory.
func newServerLogger(out *slog.Logger, database string) serverLogger {
	return serverLogger{
		out: out.With("component", "temporal"), building: &atomic.Bool{}, stopping: &atomic.Bool{},
		faults: &faultWatch{file: database, out: out, now: time.Now},
	}
}

// fatalError is the value with which Fatal panics while the server is being built.
type fatalError struct {
	message string
}

func (e *fatalError) Error() string { return e.message }

// lostPort reports whether a listener could not be opened because its port was taken. It matches text because the
// server reports nothing else.
func (e *fatalError) lostPort() bool {
	return strings.Contains(e.message, syscall.EADDRINUSE.Error())
}

func (serverLogger) Debug(string, ...tag.Tag) {}

func (serverLogger) Info(string, ...tag.Tag) {}

func (l serverLogger) Warn(msg string, tags ...tag.Tag) { l.log(slog.LevelDebug, msg, tags) }

func (l serverLogger) Error(msg string, tags ...tag.Tag) {
	l.faults.observe(describe(msg, tags))
	l.log(slog.LevelInfo, msg, tags)
}

func (l serverLogger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelWarn, msg, tags) }

func (l serverLogger) Panic(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	panic(describe(msg, tags))
}

// Fatal does not return, because its callers rely on that, but it does not end the process. While the server is being
// built, Start returns the failure as an error; later, only the calling goroutine ends. A service that is stopped
// before it serves also calls Fatal.
func (l serverLogger) Fatal(msg string, tags ...tag.Tag) {
	if !l.building.Load() {
		l.log(slog.LevelError, msg, tags)
		runtime.Goexit()
	}
	panic(&fatalError{message: describe(msg, tags)})
}

func (l serverLogger) log(level slog.Level, msg string, tags []tag.Tag) {
	if l.stopping.Load() {
		level = slog.LevelDebug
	}
	ctx := context.Background()
	if !l.out.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, len(tags))
	for i, t := range tags {
		attrs[i] = slog.Any(t.Key(), t.Value())
	}
	l.out.LogAttrs(ctx, level, msg, attrs...)
}

// guard runs build and returns a fatal failure in it as an error.
func (l serverLogger) guard(build func() error) (err error) {
	l.building.Store(true)
	defer func() {
		l.building.Store(false)
		switch r := recover().(type) {
		case nil:
		case *fatalError:
			err = r
		default:
			panic(r)
		}
	}()
	return build()
}

func describe(msg string, tags []tag.Tag) string {
	for _, t := range tags {
		msg += fmt.Sprintf(" %s=%v", t.Key(), t.Value())
	}
	return msg
}
