package stack

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"
)

// quietKubernetes redirects the log of the Kubernetes client to a logger at debug level. Nodes log the important errors
// themselves.
func quietKubernetes(logger *slog.Logger) {
	klog.SetSlogLogger(slog.New(atDebug{logger.With("component", "kubernetes client").Handler()}))
}

// atDebug is a handler that turns every record into a debug record.
type atDebug struct{ slog.Handler }

// Enabled reports whether debug records are handled.
func (h atDebug) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle handles a record. It checks the level because the client does not call Enabled for errors.
func (h atDebug) Handle(ctx context.Context, r slog.Record) error {
	if !h.Handler.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h atDebug) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atDebug{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h atDebug) WithGroup(name string) slog.Handler { return atDebug{h.Handler.WithGroup(name)} }
