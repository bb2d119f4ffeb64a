//go:build linux

package qemu

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/dev/testneeds"
)

// patience bounds every operation of a machine, emulated on a busy computer.
const patience = 5 * time.Minute

func TestConsoleIsForwardedToTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	var out testneeds.Output
	c := console{path: path, to: &out, full: func() { t.Error("it is full") }}
	ended, copied := make(chan struct{}), make(chan error, 1)
	go func() { copied <- c.copy(t.Context(), ended) }()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("first\r"); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "a part of a line is passed on", func() bool { return out.String() == "first" })
	if _, err := file.WriteString("\nsecond\r\n\r50 %\r100 %\r\n"); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "lines are passed on", func() bool { return strings.HasSuffix(out.String(), "100 %\n") })
	if _, err := file.WriteString("last words"); err != nil {
		t.Fatal(err)
	}
	close(ended)
	if err := <-copied; err != nil || out.String() != "first\nsecond\n\r50 %\r100 %\nlast words" {
		t.Errorf("passed on: %q, error %v", out.String(), err)
	}
	c.to = failing{}
	if err := c.copy(t.Context(), ended); !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v of a writer that fails", err)
	}
	none := console{path: filepath.Join(t.TempDir(), "none"), to: &out}
	if err := none.copy(t.Context(), ended); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := none.copy(ctx, make(chan struct{})); err != nil {
		t.Error(err)
	}
}

// failing is a writer that always fails.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrPermission }

func TestMachinesThatPrintTooMuchDoNotFillTheDisk(t *testing.T) {
	t.Parallel()
	f := folder(t.TempDir())
	// Single lines give the launcher short reads; a flood follows.
	script := "echo $$ >pid; i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); echo line $i; done; head -c 100000000 /dev/zero; echo the end; exit 3"
	launcher, err := startLauncher(f, []string{"sh", "-c", script}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reap(launcher)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if code, ok := f.awaitExitCode(ctx); !ok || code != 3 {
		t.Errorf("exit code %d, known %v", code, ok)
	}
	text, err := os.ReadFile(f.file(consoleFile))
	if err != nil || len(text) != maxConsole || bytes.Contains(text, []byte("the end")) || !bytes.Contains(text, []byte("line 3000\n")) {
		t.Errorf("the file has %d bytes, error %v", len(text), err)
	}
	isFull := false
	var out bytes.Buffer
	c := console{path: f.file(consoleFile), to: &out, full: func() { isFull = true }}
	ended := make(chan struct{})
	close(ended)
	if err := c.copy(t.Context(), ended); err != nil || !isFull || out.Len() != maxConsole {
		t.Errorf("%d bytes are passed on, full %v, error %v", out.Len(), isFull, err)
	}
}

func TestLaunchersKeepSecretsOfTheWorker(t *testing.T) {
	t.Setenv("SWITCHYARD_SECRET_OF_TEST", "secret")
	f := folder(t.TempDir())
	launcher, err := startLauncher(f, []string{"env"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reap(launcher)
	if text, err := os.ReadFile(f.file(consoleFile)); err != nil || bytes.Contains(text, []byte("secret")) || !bytes.Contains(text, []byte("PATH=")) {
		t.Errorf("its environment is %s, error %v", text, err)
	}
}
