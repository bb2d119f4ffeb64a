package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
)

const (
	// readyTimeout bounds how long Temporal and the store may take to answer a readiness probe.
	readyTimeout = 3 * time.Second
	// faultTimeout bounds how long Temporal may take to answer after a call has failed.
	faultTimeout = time.Second
)

// readyKey is a key without a value. A not-found error for it shows that the store can be read.
var readyKey = storekey.Status("readyz", 0)

// errTemporalAway is the error of calls that failed because Temporal is away.
var errTemporalAway = errors.New("Temporal does not answer the gateway; see that it runs and that the gateway reaches it, then try again")

// health answers the probes of load balancers, and finds the fault of Temporal for which a call has failed.
type health struct {
	client   client.Client
	store    *store.Store
	fault    func() error    // as Config.TemporalFault
	stopping <-chan struct{} // closed when the gateway shuts down
	log      *slog.Logger
}

// serveAlive reports that the process is alive.
func (h health) serveAlive(w http.ResponseWriter, _ *http.Request) { writeWord(w, http.StatusOK, "ok") }

// serveReady reports whether this gateway can answer calls, and if not, what is away. The errors go to the log.
func (h health) serveReady(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if reasons, err := h.unreadiness(ctx); len(reasons) > 0 {
		text := strings.Join(reasons, "; ")
		h.log.Warn("the gateway is not ready", "reason", text, "error", err)
		writeWord(w, http.StatusServiceUnavailable, "unavailable: "+text)
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

// unreadiness returns why the gateway cannot answer calls, or nothing if it can. The error has details for operators.
func (h health) unreadiness(ctx context.Context) (reasons []string, err error) {
	select {
	case <-h.stopping:
		return []string{"the gateway is shutting down"}, nil
	default:
	}
	if known := h.fault(); known != nil {
		reasons = append(reasons, known.Error())
	} else if err = h.checkTemporal(ctx); err != nil {
		reasons = append(reasons, "Temporal does not answer")
	}
	if _, failed := h.store.Get(ctx, readyKey); failed != nil && !errors.Is(failed, store.ErrNotFound) {
		reasons, err = append(reasons, "the store does not answer"), errors.Join(err, failed)
	}
	return reasons, err
}

func (h health) checkTemporal(ctx context.Context) error {
	_, err := h.client.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err
}

// temporalFault returns why Temporal cannot work at the moment, or nil if it answers.
func (h health) temporalFault(ctx context.Context) error {
	if known := h.fault(); known != nil {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, faultTimeout)
	defer cancel()
	if h.checkTemporal(ctx) != nil {
		return errTemporalAway
	}
	return nil
}
