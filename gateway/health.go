package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
)

// readyTimeout bounds how long Temporal and the store may take to answer a readiness probe.
const readyTimeout = 3 * time.Second

// readyKey is a key without a value. A not-found error for it shows that the store can be read.
var readyKey = storekey.Status("readyz", 0)

// health answers the probes of load balancers.
type health struct {
	client   client.Client
	store    *store.Store
	fault    func() error    // as Config.TemporalFault
	stopping <-chan struct{} // closed when the gateway shuts down
	log      *slog.Logger
}

// serveAlive reports that the process is alive.
func (h health) serveAlive(w http.ResponseWriter, _ *http.Request) { writeWord(w, http.StatusOK, "ok") }

// serveReady reports whether this gateway can answer calls. The reason why it cannot goes to the log, and a known fault of
// Temporal to the caller, too.
func (h health) serveReady(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := h.ready(ctx); err != nil {
		h.log.Warn("the gateway is not ready", "error", err)
		word := "unavailable"
		if fault := h.fault(); fault != nil {
			word += ": " + fault.Error()
		}
		writeWord(w, http.StatusServiceUnavailable, word)
		return
	}
	writeWord(w, http.StatusOK, "ready")
}

// writeWord answers a probe. Any caller may read the answer, so it names no address, no file and no run.
func writeWord(w http.ResponseWriter, status int, word string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	// An error means that the caller has disconnected.
	_, _ = fmt.Fprintln(w, word)
}

// ready returns the reasons why the gateway cannot answer calls, or nil.
func (h health) ready(ctx context.Context) error {
	select {
	case <-h.stopping:
		return errors.New("the gateway is shutting down")
	default:
	}
	var errs []error
	if err := h.fault(); err != nil {
		errs = append(errs, err)
	}
	if _, err := h.client.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		errs = append(errs, fmt.Errorf("Temporal does not answer: %w", err))
	}
	if _, err := h.store.Get(ctx, readyKey); err != nil && !errors.Is(err, store.ErrNotFound) {
		errs = append(errs, fmt.Errorf("the store does not answer: %w", err))
	}
	return errors.Join(errs...)
}
