package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"

	"switchyard/dev/embedded"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// serverEnv makes the test binary a Temporal server that ends with its standard
// input. In a process of its own it does not hide goroutines that leak here.
const serverEnv = "GATEWAY_TEST_TEMPORAL"

// quietLogger keeps the Temporal SDK from writing into the output of tests.
var quietLogger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

var (
	// temporalClient talks to the Temporal server of the tests.
	temporalClient client.Client
	// controlWorker runs scriptedRun and scriptedExplain.
	controlWorker worker.Worker
)

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		serveTemporal()
		return
	}
	os.Exit(runTests(m))
}

func serveTemporal() {
	server, err := embedded.Start(context.Background(), embedded.Options{
		SearchAttributes: visibility.Types(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(server.Address())
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = server.Stop()
}

func runTests(m *testing.M) int {
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serverEnv+"=1")
	server.Stderr = os.Stderr
	stop, err := server.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer func() { _ = stop.Close(); _ = server.Wait() }()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		panic("the Temporal server did not start")
	}
	temporalClient, err = client.Dial(client.Options{HostPort: strings.TrimSpace(address), Logger: quietLogger})
	if err != nil {
		panic(err)
	}
	controlWorker = startWorker()
	code := m.Run()
	controlWorker.Stop()
	temporalClient.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

func startWorker() worker.Worker {
	w := worker.New(temporalClient, names.ControlQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(scriptedRun, workflow.RegisterOptions{Name: names.RunWorkflow})
	w.RegisterWorkflowWithOptions(scriptedFanOut, workflow.RegisterOptions{Name: names.FanOutWorkflow})
	w.RegisterWorkflowWithOptions(scriptedExplain, workflow.RegisterOptions{Name: names.ExplainWorkflow})
	if err := w.Start(); err != nil {
		panic(err)
	}
	return w
}
