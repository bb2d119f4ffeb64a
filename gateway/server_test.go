package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

func TestHealth(t *testing.T) {
	f := start(t)
	res, err := http.Get(f.server.URL() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var health map[string]string
	if err := json.NewDecoder(res.Body).Decode(&health); err != nil || health["status"] != "ok" || health["version"] != "dev" {
		t.Errorf("%v, %v", health, err)
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

func TestReflection(t *testing.T) {
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

// TestOrigins lets programs through and the pages of the gateway's own host, and
// nothing that another page makes a browser send.
func TestOrigins(t *testing.T) {
	f := start(t)
	host := f.server.Address()
	for _, test := range []struct {
		name, host, origin, site string
		want                     int
	}{
		{"a program", host, "", "", http.StatusOK},
		{"a program by name", "switchyard.example:7280", "", "", http.StatusOK},
		{"own page", host, "http://" + host, "same-origin", http.StatusOK},
		{"own page as localhost", "localhost:7280", "http://localhost:7280", "same-origin", http.StatusOK},
		{"foreign page", host, "https://evil.example", "cross-site", http.StatusForbidden},
		{"foreign page, old browser", host, "https://evil.example", "", http.StatusForbidden},
		{"a name made to point here", "evil.example", "http://evil.example", "same-origin", http.StatusForbidden},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			f.server.URL()+switchyardv1connect.RunServiceListRunsProcedure, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = test.host
		req.Header.Set("Content-Type", "application/json")
		if test.origin != "" {
			req.Header.Set("Origin", test.origin)
		}
		if test.site != "" {
			req.Header.Set("Sec-Fetch-Site", test.site)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != test.want {
			t.Errorf("%s: %s", test.name, res.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestListenTaken(t *testing.T) {
	f := start(t)
	g, err := New(Config{Client: temporalClient, Store: f.store})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	_, err = g.Listen(t.Context(), f.server.Address())
	if err == nil || !strings.Contains(err.Error(), f.server.Address()+" is taken") {
		t.Errorf("the error is %v", err)
	}
	if _, err := g.Listen(t.Context(), "nowhere"); err == nil {
		t.Error("an address without a port is accepted")
	}
}

// TestClose ends open streams, and may be called twice.
func TestClose(t *testing.T) {
	f := start(t)
	w := f.watch(t, f.submit(t, "open"))
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

func TestConfig(t *testing.T) {
	_, err := New(Config{PollInterval: -1})
	for _, field := range []string{"Client", "Store", "PollInterval"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not in %v", field, err)
		}
	}
}
