package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/client"
)

// TestReadyNeedsTemporalAndTheStore probes a gateway with both, and gateways that lack one of them.
func TestReadyNeedsTemporalAndTheStore(t *testing.T) {
	t.Parallel()
	gone, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Logger: quietLogger})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	broken := filepath.Join(t.TempDir(), "store")
	for name, test := range map[string]struct {
		client   client.Client
		location string
		stopped  bool
		want     int
		says     string
	}{
		"all there":        {temporalClient, "mem://", false, http.StatusOK, `ready`},
		"without Temporal": {gone, "mem://", false, http.StatusServiceUnavailable, "unavailable"},
		"without a store":  {temporalClient, broken, false, http.StatusServiceUnavailable, "unavailable"},
		"shutting down":    {temporalClient, "mem://", true, http.StatusServiceUnavailable, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := openStore(t, test.location)
			if test.location == broken {
				// A symbolic link that points to itself stands in the way of the key, so reading it fails.
				if err := os.MkdirAll(filepath.Join(broken, "runs", "readyz"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink("status", filepath.Join(broken, "runs", "readyz", "status")); err != nil {
					t.Fatal(err)
				}
			}
			g, err := New(Config{Client: test.client, Store: kept})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if test.stopped {
				g.Close()
			}
			server := httptest.NewServer(g.Handler())
			defer server.Close()
			probe := func() (int, string) {
				res, err := server.Client().Get(server.URL + "/readyz")
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				return res.StatusCode, string(body)
			}
			status, body := probe()
			if test.want == http.StatusOK { // a busy machine may take longer than a probe waits
				eventually(t, "the gateway is ready", func() bool {
					status, body = probe()
					return status == http.StatusOK
				})
			}
			if status != test.want || body != test.says+"\n" {
				t.Errorf("%d: %s", status, body)
			}
		})
	}
}
