package stack

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"
)

// quietKubernetes has the client of Kubernetes log to a logger, at level debug: nodes say themselves what of it matters.
func quietKubernetes(logger *slog.Logger) {
	klog.SetSlogLogger(slog.New(atDebug{logger.With("component", "kubernetes client").Handler()}))
}

// atDebug is a handler to which every record is one of level debug.
type atDebug struct{ slog.Handler }

// Enabled reports whether records of level debug are handled.
func (h atDebug) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle handles a record. The client does not ask whether errors are.
func (h atDebug) Handle(ctx context.Context, r slog.Record) error {
	if !h.Handler.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}

// WithAttrs is of slog.Handler.
func (h atDebug) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atDebug{h.Handler.WithAttrs(attrs)}
}

// WithGroup is of slog.Handler.
func (h atDebug) WithGroup(name string) slog.Handler { return atDebug{h.Handler.WithGroup(name)} }
