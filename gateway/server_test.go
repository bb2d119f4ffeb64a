package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/activities/metrics"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
)

// fetch sends a GET request, and returns the status and the text of the response.
func fetch(t *testing.T, url string) (status int, text string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
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

func TestHealthServiceServes(t *testing.T) {
	t.Parallel()
	f := start(t)
	if got := f.rest(t, "POST", "/grpc.health.v1.Health/Check", `{"service":"switchyard.v1.RunService"}`, "Content-Type", jsonHeader); !strings.HasSuffix(fmt.Sprint(got.value["status"]), "SERVING") {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// TestReadyNeedsTemporalAndTheStore probes a gateway with both, and gateways that lack one of them.
func TestReadyNeedsTemporalAndTheStore(t *testing.T) {
	t.Parallel()
	gone, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	// A symbolic link that points to itself stands in the way of the key, so reading it fails.
	broken := filepath.Join(t.TempDir(), "store")
	if err := errors.Join(os.MkdirAll(filepath.Join(broken, "runs", "readyz"), 0o700), os.Symlink("status", filepath.Join(broken, "runs", "readyz", "status"))); err != nil {
		t.Fatal(err)
	}
	f, closing := start(t), start(t)
	closing.Gateway.Close()
	for name, test := range map[string]struct {
		gateway *fixture
		status  int
		want    string
	}{
		"all there":        {f, http.StatusOK, "ready\n"},
		"without Temporal": {startConfigured(t, "mem://", Config{Client: gone}), http.StatusServiceUnavailable, "unavailable: Temporal does not answer\n"},
		"a full disk":      {startConfigured(t, "mem://", Config{TemporalFault: func() error { return errors.New("the disk is full") }}), http.StatusServiceUnavailable, "unavailable: the disk is full\n"},
		"without a store":  {startIn(t, broken), http.StatusServiceUnavailable, "unavailable: the store does not answer\n"},
		"shutting down":    {closing, http.StatusServiceUnavailable, "unavailable: the gateway is shutting down\n"},
	} {
		eventually(t, name, func() bool { // a busy machine may take longer than a probe waits
			status, text := fetch(t, test.gateway.server.URL()+"/readyz")
			return status == test.status && text == test.want
		})
		if status, text := fetch(t, test.gateway.server.URL()+"/healthz"); status != http.StatusOK || text != "ok\n" {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

// silentTemporal is a server that answers nothing in time.
type silentTemporal struct{ client.Client }

func (silentTemporal) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, context.DeadlineExceeded
}

func (silentTemporal) ExecuteWorkflow(context.Context, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	return nil, context.DeadlineExceeded
}

func (silentTemporal) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	return nil, context.DeadlineExceeded
}

// TestCallsNameASilentTemporal checks that callers learn that Temporal does not answer the gateway, and what became of a run that they
// submitted.
func TestCallsNameASilentTemporal(t *testing.T) {
	t.Parallel()
	f := startConfigured(t, "mem://", Config{Client: silentTemporal{temporalClient}})
	const silent, document = "Temporal does not answer the gateway", "name: env\ntasks: { a: { type: shell, spec: { command: make } } }"
	refused(t, "a reader", f.client.GetRun, &v1.GetRunRequest{Id: "env-1"}, connect.CodeUnavailable, silent, "look for run env-1")
	submit := &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document}}
	refused(t, "a submitter", f.client.SubmitRun, submit, connect.CodeUnavailable, silent, "start a run of env", "it may have started; `switchyard runs list --workflow env` tells")
	submit.IdempotencyKey = "k"
	refused(t, "a submitter with a key", f.client.SubmitRun, submit, connect.CodeUnavailable, silent, "with the same idempotency key, the request can be repeated safely")
}

func TestGatewayServesMetrics(t *testing.T) {
	t.Parallel()
	figures, err := metrics.New("test")
	if err != nil {
		t.Fatal(err)
	}
	figures.Claimed("a")
	if status, text := fetch(t, startConfigured(t, "mem://", Config{Metrics: figures}).server.URL()+metrics.Path); status != http.StatusOK || !strings.Contains(text, `switchyard_worker_claims_total{node="a"} 1`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := fetch(t, start(t).server.URL()+metrics.Path); status != http.StatusNotFound {
		t.Errorf("without metrics: %d", status)
	}
}

// TestUnknownJSONFieldIsRefusedByName checks that an unknown field is rejected by name rather than dropped.
func TestUnknownJSONFieldIsRefusedByName(t *testing.T) {
	t.Parallel()
	f := start(t)
	for name, test := range map[string]struct{ procedure, kind, body, code, field string }{
		"definition": {
			switchyardv1connect.RunServiceSubmitRunProcedure, "application/json",
			`{"definition":{"name":"m","tasks":{"a":{"type":"shell","timout":"1s","condishun":"false","spec":{"command":"true"}}}}}`, "invalid_argument", "did you mean timeout?",
		},
		"request":  {switchyardv1connect.RunServiceSubmitRunProcedure, "application/json; charset=utf-8", `{"document":"","inptu":{}}`, "invalid_argument", "did you mean input?"},
		"stream":   {switchyardv1connect.RunServiceStreamRunLogsProcedure, "application/connect+json", string(frame([]byte(`{"id":"last","folow":true}`))), "invalid_argument", "did you mean follow?"},
		"grpc-web": {switchyardv1connect.RunServiceGetRunProcedure, "application/grpc-web+json", string(frame([]byte(`{"id":"last","pagesize":2}`))), "Grpc-Status:[3]", "pagesize"},
	} {
		res, err := f.httpClient(t, "").Post(f.server.URL()+test.procedure, test.kind, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{test.code, "unknown field", test.field} {
			// gRPC-Web returns errors in the headers.
			if said := fmt.Sprint(string(body), res.Header); !strings.Contains(said, want) {
				t.Errorf("%s: %q is not in the answer %d %s", name, want, res.StatusCode, said)
			}
		}
	}
}

// TestObserverRefusesWrites checks that an observer can read and cannot change anything.
func TestObserverRefusesWrites(t *testing.T) {
	t.Parallel()
	f := startConfigured(t, "mem://", Config{Observer: true})
	refused(t, "submit to an observer", f.client.SubmitRun, submitRequest(document("observed", "a")), connect.CodePermissionDenied)
	f.list(t, &v1.ListRunsRequest{})
	// Without another registry, a gateway reads the one in Temporal.
	nodes := dialService(t, f, switchyardv1connect.NewNodeServiceClient, "")
	if found := answer(t, nodes.ListNodes, &v1.ListNodesRequest{}).GetItems(); len(found) != 0 {
		t.Errorf("the nodes are %v", found)
	}
	refused(t, "drain through an observer", nodes.DrainNode, &v1.DrainNodeRequest{Name: "a"}, connect.CodePermissionDenied)
}

func TestReflectionListsServices(t *testing.T) {
	t.Parallel()
	f := start(t)
	client := grpcreflect.NewClient(f.httpClient(t, ""), f.server.URL(), connect.WithGRPC())
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
	key := storekey.LogChunk("ci-0k", 0, "build", 0, 0, 0)
	if err := f.config.Store.Put(t.Context(), key, []byte("password")); err != nil {
		t.Fatal(err)
	}
	get := func(procedure, message string) string {
		return procedure + "?" + url.Values{"connect": {"v1"}, "encoding": {"json"}, "message": {message}}.Encode()
	}
	for _, test := range []struct{ method, path, header string }{
		{http.MethodGet, "/healthz", ""},
		{http.MethodGet, metrics.Path, ""},
		{http.MethodGet, get(switchyardv1connect.RunServiceListRunsProcedure, "{}"), ""},
		{http.MethodGet, get(switchyardv1connect.BlobServiceGetBlobProcedure, fmt.Sprintf("{%q:%q}", "key", key)), ""},
		{http.MethodPost, switchyardv1connect.RunServiceListRunsProcedure, "Content-Type: application/json\r\nContent-Length: 2\r\n"},
	} {
		for host, want := range map[string]int{
			f.server.Address(): http.StatusOK, "localhost:7280": http.StatusOK, "yard.example": http.StatusOK,
			"evil.example": http.StatusForbidden, "evil.example:7280": http.StatusForbidden,
		} {
			if status := rawRequest(t, f.server.Address(), host, test.method, test.path, test.header); status != want {
				t.Errorf("%s %s as %s: %d, want %d", test.method, test.path, host, status, want)
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
	_, err := New(Config{PollInterval: -1, Defaults: definition.RunDefaults{Timeout: -1}})
	for _, field := range []string{"Client", "Store", "PollInterval", "Defaults.Timeout"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not in %v", field, err)
		}
	}
}
