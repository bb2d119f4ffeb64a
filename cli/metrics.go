package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"switchyard/activities/metrics"
)

const (
	// defaultMetricsAddress is where a worker serves its figures.
	defaultMetricsAddress = "127.0.0.1:7281"
	// noMetrics is the address of a worker that serves none.
	noMetrics = "none"
)

// startMetrics returns the figures of this process, and serves them where it has
// no gateway; nil when nobody wants them.
func (s *stack) startMetrics(ctx context.Context, cfg stackConfig) (*metrics.Metrics, error) {
	if !cfg.Metrics && cfg.MetricsAddress == "" {
		return nil, nil
	}
	figures, err := metrics.New(version())
	if err != nil || cfg.MetricsAddress == "" {
		return figures, err
	}
	server, err := figures.Listen(ctx, cfg.MetricsAddress)
	switch taken := errors.Is(err, syscall.EADDRINUSE); {
	case taken && cfg.MetricsOptional:
		cfg.Logger.Warn("this worker serves no figures for Prometheus: another process listens at the address; give each worker of a machine a --metrics-address of its own, or none", "address", cfg.MetricsAddress)
		return figures, nil
	case taken:
		return nil, fmt.Errorf("the address for metrics, %s, is taken; choose another with --metrics-address, or none", cfg.MetricsAddress)
	case err != nil:
		return nil, err
	}
	s.metrics = server
	s.onStop("metrics", server.Close)
	return figures, nil
}

// metricsURL is where this process serves its figures by itself; empty: nowhere.
func (s *stack) metricsURL() string {
	if s.metrics == nil {
		return ""
	}
	return s.metrics.URL()
}
