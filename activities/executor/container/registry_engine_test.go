//go:build engines

package container

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"switchyard/activities/executor/container/enginetest"
)

// fakeRegistry is a registry that counts requests and can hold them up.
type fakeRegistry struct {
	host string

	mu        sync.Mutex
	manifests int           // requests by name or digest
	blobs     int           // requests
	gate      chan struct{} // requests for blobs wait until it is closed, unless it is nil
	asked     chan struct{} // receives a value for each request for a blob
	login     string        // required login as user:password, or "" for none
}

func newFakeRegistry(t *testing.T) *fakeRegistry {
	t.Helper()
	y := &fakeRegistry{asked: make(chan struct{}, 1000)}
	y.host = enginetest.Registry(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { y.serve(next, w, r) })
	})
	return y
}

func (y *fakeRegistry) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	y.mu.Lock()
	login, gate := y.login, y.gate
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	user, password, _ := r.BasicAuth()
	refused := reading && login != "" && user+":"+password != login
	blob := r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") && !refused
	if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
		y.manifests++
	}
	if blob {
		y.blobs++
	}
	y.mu.Unlock()
	if refused {
		w.Header().Set("WWW-Authenticate", `Basic realm="yard"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
		return
	}
	if blob {
		y.asked <- struct{}{}
		if gate != nil {
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		}
	}
	next.ServeHTTP(w, r)
}

// hold makes requests for blobs wait until release is called.
func (y *fakeRegistry) hold(t *testing.T) (release func()) {
	gate := make(chan struct{})
	var once sync.Once
	release = func() { once.Do(func() { close(gate) }) }
	t.Cleanup(release)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.gate = gate
	return release
}

func (y *fakeRegistry) require(login string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.login = login
}

func (y *fakeRegistry) counts() (manifests, blobs int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.manifests, y.blobs
}

// push stores an image of random layers under a name, and returns the name with its
// host and the digest. It removes the image from the machine's engine at the end of the
// test.
func (y *fakeRegistry) push(t *testing.T, name string, layers int) (image, digest string) {
	t.Helper()
	repo, tag, _ := strings.Cut(name, ":")
	put := func(method, path, kind string, body []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+y.host+"/v2/"+repo+"/"+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", kind)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusCreated {
			t.Fatalf("%s %s: %s", method, path, response.Status)
		}
	}
	const dockerKind = "application/vnd.docker."
	part := func(kind string, data []byte) map[string]any {
		put(http.MethodPost, "blobs/uploads/?digest="+digestOf(data), "application/octet-stream", data)
		return map[string]any{"mediaType": dockerKind + kind, "size": len(data), "digest": digestOf(data)}
	}
	var parts []any
	var diffs []string
	for range layers {
		data := randomTar(t)
		parts, diffs = append(parts, part("image.rootfs.diff.tar", data)), append(diffs, digestOf(data))
	}
	config := part("container.image.v1+json", encode(t, map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{}, "rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
	}))
	kind := dockerKind + "distribution.manifest.v2+json"
	manifest := encode(t, map[string]any{"schemaVersion": 2, "mediaType": kind, "config": config, "layers": parts})
	put(http.MethodPut, "manifests/"+tag, kind, manifest)
	image = y.host + "/" + name
	digest = y.host + "/" + repo + "@" + digestOf(manifest)
	loseImage(t, enginetest.Engine(t), digest)
	loseImage(t, enginetest.Engine(t), image)
	return image, digest
}

// randomTar returns an archive with a small unique file.
func randomTar(t *testing.T) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	text := rand.Text()
	err := w.WriteHeader(&tar.Header{Name: text, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func digestOf(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

func encode(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// ownImage returns a unique name for the image with a shell.
func ownImage(t *testing.T) string {
	t.Helper()
	docker, name := enginetest.Engine(t), aName(t)
	if err := docker.ImageTag(t.Context(), enginetest.Image(t), name); err != nil {
		t.Fatal(err)
	}
	loseImage(t, docker, name)
	return name
}

// aName returns a unique image name.
func aName(t *testing.T) string {
	return "switchyard-test/own:" + strings.TrimPrefix(digestOf(randomTar(t)), "sha256:")[:12]
}

// loseImage removes an image from the machine's engine at the end of the test.
func loseImage(t *testing.T, docker *client.Client, name string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		_, _ = docker.ImageRemove(ctx, name, image.RemoveOptions{Force: true})
	})
}
