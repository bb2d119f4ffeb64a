package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/activities/metrics"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

func TestHealthServiceServes(t *testing.T) {
	t.Parallel()
	f := start(t)
	res, err := http.Get(f.server.URL() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if health, err := io.ReadAll(res.Body); err != nil || string(health) != "ok\n" {
		t.Errorf("%q, %v", health, err)
	}
	checked, err := http.Post(f.server.URL()+"/grpc.health.v1.Health/Check", "application/json",
		strings.NewReader(`{"service":"switchyard.v1.RunService"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer checked.Body.Close()
	var status struct{ Status string }
	if err := json.NewDecoder(checked.Body).Decode(&status); err != nil || !strings.HasSuffix(status.Status, "SERVING") {
		t.Errorf("%v, %v", status, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestReflectionListsServices(t *testing.T) {
	t.Parallel()
	f := start(t)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	client := grpcreflect.NewClient(&http.Client{Transport: transport}, f.server.URL(), connect.WithGRPC())
	stream := client.NewStream(t.Context())
	defer stream.Close()
	services, err := stream.ListServices()
	if err != nil || !slices.Contains(services, protoreflect.FullName(switchyardv1connect.RunServiceName)) {
		t.Fatalf("the services are %v, %v", services, err)
	}
	files, err := stream.FileContainingSymbol(switchyardv1connect.RunServiceName)
	if err != nil || len(files) == 0 {
		t.Errorf("no file: %v", err)
	}
}

// TestGatewayAnswersToItsOwnNamesOnly covers DNS rebinding: a page whose host name is re-pointed at loopback
// after it has loaded. The browser then treats the gateway as the page's own site and sends read requests
// without an Origin header.
func TestGatewayAnswersToItsOwnNamesOnly(t *testing.T) {
	t.Parallel()
	figures, err := metrics.New("test")
	if err != nil {
		t.Fatal(err)
	}
	f := startConfigured(t, "mem://", Config{Metrics: figures, Hosts: []string{"yard.example"}})
	server := f.server
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	key := storekey.LogChunk("ci-0k", 0, "build", 0, 0, 0)
	if err := f.config.Store.Put(t.Context(), key, []byte("password")); err != nil {
		t.Fatal(err)
	}
	get := func(procedure, message string) string {
		return procedure + "?" + url.Values{"connect": {"v1"}, "encoding": {"json"}, "message": {message}}.Encode()
	}
	for _, test := range []struct{ method, path, body string }{
		{http.MethodGet, "/healthz", ""},
		{http.MethodGet, metrics.Path, ""},
		{http.MethodGet, get(switchyardv1connect.RunServiceListRunsProcedure, "{}"), ""},
		{http.MethodGet, get(switchyardv1connect.BlobServiceGetBlobProcedure, fmt.Sprintf("{%q:%q}", "key", key)), ""},
		{http.MethodPost, switchyardv1connect.RunServiceListRunsProcedure, "{}"},
	} {
		for host, want := range map[string]int{
			server.Address(): http.StatusOK, "localhost:7280": http.StatusOK, "yard.example": http.StatusOK,
			"evil.example": http.StatusForbidden, "evil.example:7280": http.StatusForbidden,
		} {
			req, err := http.NewRequestWithContext(t.Context(), test.method, server.URL()+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			if test.body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err := errors.Join(err, res.Body.Close()); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != want {
				t.Errorf("%s %s as %s: %s %s", test.method, test.path, host, res.Status, body)
			}
			if want == http.StatusForbidden && !strings.Contains(string(body), "--allowed-host") {
				t.Errorf("%s %s as %s: %s names no remedy", test.method, test.path, host, body)
			}
		}
	}
}

// TestRefusalSpeaksTheClientsProtocol checks that clients of each protocol can show why the gateway refused
// them.
func TestRefusalSpeaksTheClientsProtocol(t *testing.T) {
	t.Parallel()
	f := start(t)
	for name, options := range map[string][]connect.ClientOption{"Connect": nil, "gRPC": {connect.WithGRPC()}} {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		defer transport.CloseIdleConnections()
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, f.server.Address())
		}
		client := switchyardv1connect.NewRunServiceClient(&http.Client{Transport: transport}, "http://evil.example", options...)
		_, err := client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{}))
		if connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), "--allowed-host") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestListenReportsATakenAddress(t *testing.T) {
	t.Parallel()
	f := start(t)
	g, err := New(Config{Client: temporalClient, Store: f.config.Store})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	_, err = g.Listen(t.Context(), f.server.Address())
	if err == nil || !strings.Contains(err.Error(), f.server.Address()+" is already in use") {
		t.Errorf("the error is %v", err)
	}
	if _, err := g.Listen(t.Context(), "nowhere"); err == nil {
		t.Error("an address without a port is accepted")
	}
}

// TestCloseEndsStreams checks that Close ends open streams and may be called twice.
func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	f := start(t)
	w := f.watch(t, f.submit(t, "closed"))
	w.next()
	if err := f.server.Close(); err != nil {
		t.Fatal(err)
	}
	for w.next() {
	}
	wantCode(t, "watch", w.stream.Err(), connect.CodeUnavailable)
	if err := f.server.Close(); err != nil {
		t.Error(err)
	}
	<-f.server.Done()
}

func TestConfigValidates(t *testing.T) {
	_, err := New(Config{PollInterval: -1})
	for _, field := range []string{"Client", "Store", "PollInterval"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not in %v", field, err)
		}
	}
}
