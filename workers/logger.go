package workers

import (
	"context"
	"log/slog"
)

// quietHandler lowers what the Temporal SDK says by one level: it reports as
// information what users do not need, and as an error what it repairs itself.
type quietHandler struct{ slog.Handler }

func quiet(logger *slog.Logger) *slog.Logger { return slog.New(quietHandler{logger.Handler()}) }

func lower(level slog.Level) slog.Level { return level - 4 }

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, lower(level))
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
