//go:build engines

package container_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/inside"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	inside.ServeIfAsked()
	if os.Getenv(workerVariable) != "" {
		beWorker()
	}
	testneeds.Parallel(8)
	testneeds.NoLeaks(m)
}

// workerVariable makes the test program a worker that runs the attempt given on standard input,
// with the worker's own output streams.
const workerVariable = "SWITCHYARD_TEST_WORKER"

// order is an attempt in the form that a worker reads.
type order struct {
	ID        string
	Identity  executor.Identity
	Spec      json.RawMessage
	Workspace string
	Env       map[string]string
	Host      string
}

func beWorker() {
	var o order
	spec := &structpb.Struct{}
	err := json.NewDecoder(os.Stdin).Decode(&o)
	if err == nil {
		err = protojson.Unmarshal(o.Spec, spec)
	}
	var e *containers.Executor
	if err == nil {
		e, err = containers.New(containers.Options{Host: o.Host})
	}
	if err == nil {
		_, err = e.Run(context.Background(), executor.Attempt{
			ID: o.ID, Identity: o.Identity, Spec: spec, Dirs: executor.Dirs{Workspace: o.Workspace}, Env: o.Env, Streams: executor.Streams{Stdout: os.Stdout, Stderr: os.Stderr},
		}, func() {})
	}
	fmt.Fprintln(os.Stderr, "the worker has not been killed:", err)
	os.Exit(1)
}

// abandon starts an attempt in a worker, and kills the worker once the attempt has printed a text.
func abandon(t *testing.T, host string, a executor.Attempt, ready string) {
	t.Helper()
	spec, err := protojson.Marshal(a.Spec)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(order{ID: a.ID, Identity: a.Identity, Spec: spec, Workspace: a.Dirs.Workspace, Env: a.Env, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"=1")
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadFull(out, make([]byte, len(ready)))
	if kill := cmd.Process.Kill(); err != nil || kill != nil {
		t.Errorf("a worker that is to die: %v, %v", err, kill)
	}
	_ = cmd.Wait() // the error is that it was killed
}
