package gateway

import (
	"net/http"

	"switchyard/activities/metrics"
)

// serveMetrics serves the figures of the process, where there are any.
func (g *Gateway) serveMetrics(mux *http.ServeMux) {
	if g.config.Metrics != nil {
		mux.Handle("GET "+metrics.Path, g.config.Metrics.Handler())
	}
}
