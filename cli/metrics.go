package cli

import (
	"context"

	"switchyard/activities/metrics"
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
	if s.metrics, err = figures.Listen(ctx, cfg.MetricsAddress); err != nil {
		return nil, err
	}
	s.onStop("metrics", s.metrics.Close)
	return figures, nil
}
