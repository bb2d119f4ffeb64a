package stack

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
)

// TestMetricsAddressIsTaken checks that a worker whose metrics address is taken starts without metrics and logs that,
// unless the user named the address.
func TestMetricsAddressIsTaken(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var log bytes.Buffer
	s := &Stack{}
	cfg := Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), MetricsAddress: other.Addr().String(), MetricsOptional: true}
	if figures, err := s.startMetrics(t.Context(), cfg); err != nil || figures == nil || s.MetricsURL() != "" {
		t.Errorf("with the default address: %v, %q", err, s.MetricsURL())
	}
	if !strings.Contains(log.String(), "--metrics-address") || !strings.Contains(log.String(), cfg.MetricsAddress) {
		t.Errorf("it says %q", log.String())
	}
	cfg.MetricsOptional = false
	if _, err := s.startMetrics(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Errorf("with an address that was named: %v", err)
	}
	cfg.MetricsAddress = "127.0.0.1:0"
	if _, err := s.startMetrics(t.Context(), cfg); err != nil || !strings.HasPrefix(s.MetricsURL(), "http://127.0.0.1:") {
		t.Errorf("with a free address: %v, %q", err, s.MetricsURL())
	}
	if err := s.metrics.Close(); err != nil {
		t.Error(err)
	}
}
