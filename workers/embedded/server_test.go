package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	logs := newRecords()
	attributes := map[string]enums.IndexedValueType{
		"State":   enums.INDEXED_VALUE_TYPE_KEYWORD,
		"Name":    enums.INDEXED_VALUE_TYPE_KEYWORD,
		"Started": enums.INDEXED_VALUE_TYPE_DATETIME,
	}
	one := startTest(t, Options{Logger: slog.New(logs), Namespace: "yard", SearchAttributes: attributes})
	two := startTest(t, Options{Namespace: "yard"})
	if one.Address() == two.Address() || one.Namespace() != "yard" || one.UIURL() != "" {
		t.Errorf("addresses %s and %s, namespace %s, UI %q", one.Address(), two.Address(), one.Namespace(), one.UIURL())
	}
	c := dialTest(t, one)
	checkNamespace(t, c, "yard", 30*24*time.Hour, attributes)
	startWorker(t, c)
	execute(t, c, "mine", "chain", 3)

	_, err := dialTest(t, two).DescribeWorkflowExecution(t.Context(), "mine", "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); !ok {
		t.Errorf("one server's workflow, asked of another: %v", err)
	}

	// Clean-up may stop it again.
	if err := errors.Join(one.Stop(), one.Stop()); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", one.Address()); err == nil {
		_ = conn.Close()
		// Another process may have got the port.
		if _, err := c.DescribeWorkflowExecution(t.Context(), "mine", ""); err == nil {
			t.Error("the server still answers")
		}
	}
	for _, line := range logs.unexpected() {
		t.Errorf("logged: %s", line)
	}
}

func checkNamespace(t *testing.T, c client.Client, name string, retention time.Duration, attributes map[string]enums.IndexedValueType) {
	t.Helper()
	described, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if err != nil {
		t.Fatal(err)
	}
	if got := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); got != retention {
		t.Errorf("retention %s, want %s", got, retention)
	}
	capabilities := described.GetNamespaceInfo().GetCapabilities()
	if !capabilities.GetWorkerCommands() || !capabilities.GetWorkerPollCompleteOnShutdown() || !capabilities.GetEagerWorkflowStart() {
		t.Errorf("capabilities %v", capabilities)
	}
	listed, err := c.OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: name})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(listed.GetCustomAttributes(), attributes) {
		t.Errorf("search attributes %v, want %v", listed.GetCustomAttributes(), attributes)
	}
}

// TestPushedCancel waits less than the 48 s between two heartbeats of an activity with a heartbeat time-out of a
// minute, so that only a pushed cancellation arrives in time.
func TestPushedCancel(t *testing.T) {
	t.Parallel()
	c := dialTest(t, startTest(t, Options{}))
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	w := worker.New(c, testQueue, worker.Options{})
	w.RegisterActivityWithOptions(func(ctx context.Context) error {
		activity.RecordHeartbeat(ctx)
		began <- struct{}{}
		select {
		case <-ctx.Done():
			ended <- nil
		case <-time.After(30 * time.Second):
			ended <- errors.New("the cancellation was not pushed")
		}
		return ctx.Err()
	}, activity.RegisterOptions{Name: "wait"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, HeartbeatTimeout: time.Minute,
		}), "wait").Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "cancelled"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: testQueue}, "cancelled")
	if err != nil {
		t.Fatal(err)
	}
	<-began
	time.Sleep(time.Second)
	if err := c.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port
	for flag, opts := range map[string]Options{
		"--port":    {Address: taken.Addr().String()},
		"--ui-port": {UIAddress: taken.Addr().String()},
	} {
		s, err := Start(t.Context(), opts)
		want := fmt.Sprintf("port %d is taken; choose another with %s, or stop what listens there", port, flag)
		if err == nil || err.Error() != want || s != nil {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, ok := errors.AsType[*PortTakenError](err); !ok {
			t.Errorf("%T is no *PortTakenError", err)
		}
	}
}

// TestWebUIFallsBackToAFreePort opens another listener on the Web UI's port.
func TestWebUIFallsBackToAFreePort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	listener, err := listenUI(Options{UIAddress: taken.Addr().String(), UIFallback: true})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if at := listener.Addr().(*net.TCPAddr); at.Port == taken.Addr().(*net.TCPAddr).Port || !at.IP.IsLoopback() {
		t.Errorf("it listens at %s", at)
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tooMany := map[string]enums.IndexedValueType{}
	for i := range 4 {
		tooMany[fmt.Sprint("Int", i)] = enums.INDEXED_VALUE_TYPE_INT
	}
	for name, test := range map[string]struct {
		ctx  context.Context
		opts Options
		want []string
	}{
		"every option":      {t.Context(), Options{Address: "nowhere", UIAddress: "here", Retention: time.Minute}, []string{`address "nowhere"`, `ui address "here"`, "retention 1m0s"}},
		"search attributes": {t.Context(), Options{SearchAttributes: tooMany}, []string{"namespace default", "more than 3"}},
		"foreign address":   {t.Context(), Options{Address: "192.0.2.1:0"}, []string{"192.0.2.1"}},
		"cancelled":         {cancelled, Options{}, []string{"context canceled"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Start(test.ctx, test.opts)
			if err == nil || s != nil {
				t.Fatalf("got %v, %v", s, err)
			}
			for _, want := range append(test.want, "start Temporal: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}

func TestWebUI(t *testing.T) {
	t.Parallel()
	logs := newRecords()
	s := startTest(t, Options{UIAddress: "localhost:0", Namespace: "yard", Logger: slog.New(logs)})
	for path, want := range map[string]string{
		"/":                    "<!doctype html>",
		"/namespaces/yard":     "<!doctype html>",
		"/healthz":             "OK",
		"/api/v1/namespaces":   `"name": "yard"`,
		"/api/v1/settings":     `"DefaultNamespace":"yard"`,
		"/api/v1/cluster-info": `"serverVersion": "1.`,
		"/api/v1/nothing":      "Not Found",
	} {
		response, err := http.Get(s.UIURL() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, %q is not in %.300s", path, response.Status, want, body)
		}
	}

	// A page of another site must not reach the server through the browser.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.UIURL()+"/api/v1/namespaces", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("cross-site request: %s", response.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	for _, line := range logs.unexpected() {
		t.Errorf("logged: %s", line)
	}
}
