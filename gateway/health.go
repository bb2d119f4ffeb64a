package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/metrics"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
)

// readyTimeout bounds how long Temporal and the store may take to count as there.
const readyTimeout = 3 * time.Second

// readyKey has no value; that the store can say so shows that it reads.
var readyKey = storekey.Status("readyz", 0)

// readyz reports to load balancers whether this gateway can answer calls.
func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	answer, status := map[string]string{"status": "ready"}, http.StatusOK
	if err := g.ready(ctx); err != nil {
		answer, status = map[string]string{"status": "not ready", "error": err.Error()}, http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error means that the caller has gone.
	_ = json.NewEncoder(w).Encode(answer)
}

// ready returns what keeps the gateway from answering calls, or nil.
func (g *Gateway) ready(ctx context.Context) error {
	select {
	case <-g.stopping:
		return errors.New("the gateway is shutting down")
	default:
	}
	var errs []error
	if _, err := g.client.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		errs = append(errs, fmt.Errorf("Temporal does not answer: %w", err))
	}
	if _, err := g.store.Get(ctx, readyKey); err != nil && !errors.Is(err, store.ErrNotFound) {
		errs = append(errs, fmt.Errorf("the store does not answer: %w", err))
	}
	return errors.Join(errs...)
}

// serveMetrics serves the figures of the process, where there are any.
func (g *Gateway) serveMetrics(mux *http.ServeMux) {
	if g.config.Metrics != nil {
		mux.Handle("GET "+metrics.Path, g.config.Metrics.Handler())
	}
}
