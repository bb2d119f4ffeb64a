package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"switchyard/dev/testneeds"
)

// patience bounds how long an engine of a busy machine may take to answer a call.
const patience = 3 * time.Minute

// Engine returns a client of the machine's engine.
func Engine(t testing.TB) *client.Client {
	t.Helper()
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err = docker.Ping(ctx)
	}
	if err != nil {
		testneeds.Missing(t, "no container engine: %v; start dockerd", err)
	}
	t.Cleanup(func() { docker.Close() })
	return docker
}

// Image returns the name of a small image of the machine's engine, with busybox as sh, sleep, cat and
// so on.
func Image(t testing.TB) string {
	t.Helper()
	docker := Engine(t)
	err := importOnce(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := docker.ImageInspect(ctx, imageName); err == nil {
			return nil // from another test, which may be using it
		}
		return Import(docker, imageName)
	})
	if err != nil {
		t.Fatal(err)
	}
	return imageName
}

// imageName has a number that changes with the contents of the image.
const imageName = "switchyard-test/busybox:4"

var (
	imports     sync.Once
	importError error
)

func importOnce(do func() error) error {
	imports.Do(func() { importError = do() })
	return importError
}

// applets are the programs of the image.
var applets = strings.Fields("sh setsid true false sleep cat echo yes head tail dd ls env id kill mkdir touch printf wc seq test rm pwd ps grep trap stat mount nc ip ln stty tr")

// Import creates the image under a name. It needs Debian's package busybox-static.
func Import(docker *client.Client, name string) error {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("install busybox-static: %w", err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	write := func(h *tar.Header, data []byte) {
		if err == nil {
			err = w.WriteHeader(h)
		}
		if err == nil {
			_, err = w.Write(data)
		}
	}
	for _, dir := range []string{"bin/", "tmp/", "etc/"} {
		write(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o1777}, nil)
	}
	write(&tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))}, program)
	users := []byte("root:x:0:0::/:/bin/sh\nworker:x:1000:1000::/:/bin/sh\n")
	write(&tar.Header{Name: "etc/passwd", Mode: 0o644, Size: int64(len(users))}, users)
	for _, name := range applets {
		write(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox", Mode: 0o777}, nil)
	}
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	said, err := docker.ImageImport(ctx, image.ImportSource{Source: &tree, SourceName: "-"}, name, image.ImportOptions{
		Changes: []string{"ENV PATH=/bin"},
	})
	if err != nil {
		return err
	}
	defer said.Close()
	_, err = io.Copy(io.Discard, said)
	return err
}
