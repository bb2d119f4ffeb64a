package stack

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"switchyard/activities/metrics"
)

// startMetrics returns the metrics of this process, and serves them if the process has no gateway. It returns nil if
// the configuration asks for none.
func (s *Stack) startMetrics(ctx context.Context, cfg Config) (*metrics.Metrics, error) {
	if !cfg.Metrics && cfg.MetricsAddress == "" {
		return nil, nil
	}
	figures, err := metrics.New(cfg.Version)
	if err != nil || cfg.MetricsAddress == "" {
		return figures, err
	}
	server, err := figures.Listen(ctx, cfg.MetricsAddress)
	switch taken := errors.Is(err, syscall.EADDRINUSE); {
	case taken && cfg.MetricsOptional:
		cfg.Logger.Warn("this worker serves no metrics: the address is in use by another process; give each worker on a machine its own --metrics-address, or none", "address", cfg.MetricsAddress)
		return figures, nil
	case taken:
		return nil, fmt.Errorf("the address for metrics, %s, is taken; choose another with --metrics-address, or none", cfg.MetricsAddress)
	case err != nil:
		return nil, err
	}
	s.metrics = server
	s.addCloser("metrics", server.Close)
	return figures, nil
}

// MetricsURL returns the URL at which this process itself serves its metrics, or "" if it does not.
func (s *Stack) MetricsURL() string {
	if s.metrics == nil {
		return ""
	}
	return s.metrics.URL()
}
