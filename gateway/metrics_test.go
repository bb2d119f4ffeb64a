package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchyard/activities/metrics"
)

func TestGatewayServesMetrics(t *testing.T) {
	t.Parallel()
	figures, err := metrics.New("test")
	if err != nil {
		t.Fatal(err)
	}
	figures.Claimed("a")
	kept := openStore(t, "mem://")
	for _, test := range []struct {
		name    string
		metrics *metrics.Metrics
		status  int
		says    string
	}{
		{"with metrics", figures, http.StatusOK, `switchyard_worker_claims_total{node="a"} 1`},
		{"without", nil, http.StatusNotFound, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := New(Config{Client: temporalClient, Store: kept, Metrics: test.metrics})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			server := httptest.NewServer(g.Handler())
			defer server.Close()
			res, err := server.Client().Get(server.URL + metrics.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != test.status || !strings.Contains(string(body), test.says) {
				t.Errorf("%s, %v\n%s", res.Status, err, body)
			}
		})
	}
}
