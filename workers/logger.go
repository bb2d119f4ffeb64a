package workers

import (
	"context"
	"log/slog"
	"strings"
)

// quietHandler lowers the log level of the Temporal SDK by two levels. The SDK reports details as information, and as
// errors what it retries or what the status of a run shows. Panics are lowered by one level.
type quietHandler struct{ slog.Handler }

func quiet(logger *slog.Logger) *slog.Logger { return slog.New(quietHandler{logger.Handler()}) }

// levelStep is the distance between two levels of slog.
const levelStep = slog.LevelWarn - slog.LevelInfo

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level-levelStep)
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level -= levelStep
	if !strings.Contains(r.Message, "panic") {
		r.Level -= levelStep
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
