//go:build engines

package container

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container/enginetest"
)

// runSpec starts a container with a spec, waits for its end and returns its output.
func runSpec(t *testing.T, e *Executor, fields map[string]any) (executor.Result, string, error) {
	t.Helper()
	a, out, errs := enginetest.Attempt(t, "build", fields)
	result, err := e.Run(t.Context(), a, func() {})
	return result, out.String() + errs.String(), err
}

// TestRefusedSpecPullsNoImage checks that a refused spec does not pull its image.
func TestRefusedSpecPullsNoImage(t *testing.T) {
	t.Parallel()
	y := newFakeRegistry(t)
	name, _ := y.push(t, "a/refused:1", 1)
	_, _, err := runSpec(t, newFor(t, Options{}), map[string]any{"image": name, "privileged": true})
	if executor.AsStartError(err) == nil || !strings.Contains(err.Error(), "--allow-privileged") {
		t.Error(err)
	}
	if manifests, _ := y.counts(); manifests > 0 {
		t.Error("the image was asked for")
	}
}

// TestContainersHaveAddressesOfTheirOwn runs several containers in one network at a time, one of
// them with a fixed address.
func TestContainersHaveAddressesOfTheirOwn(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	e := newFor(t, Options{})
	name, prefix := newNetwork(t, docker)
	var mu sync.Mutex
	var all sync.WaitGroup
	seen := map[string]int{}
	for i := range 3 {
		want := autoAddress
		if i == 0 {
			want = prefix + "9"
		}
		all.Go(func() {
			result, out, err := runSpec(t, e, map[string]any{
				"network": name, "ip": want, "command": "ip -4 addr show eth0 | grep inet",
			})
			mu.Lock()
			defer mu.Unlock()
			fields := strings.Fields(out)
			if err != nil || result.ExitCode != 0 || len(fields) < 2 {
				t.Errorf("%+v, %v, %q", result, err, out)
				return
			}
			ip, _, _ := strings.Cut(fields[1], "/")
			seen[ip]++
			if i == 0 && ip != want {
				t.Errorf("it has %s, not %s", ip, want)
			}
		})
	}
	all.Wait()
	if len(e.addresses.reserved) > 0 {
		t.Errorf("still reserved: %v", e.addresses.reserved)
	}
	found, err := docker.NetworkInspect(t.Context(), name, network.InspectOptions{})
	if err != nil || len(found.Containers) > 0 {
		t.Errorf("%v, %v: containers are left", found.Containers, err)
	}
	for ip := range seen {
		if !strings.HasPrefix(ip, prefix) {
			t.Errorf("an address of another network: %s", ip)
		}
	}
}

// TestTakenAddressIsReplaced checks that an attempt gets another address if another container
// took its first one unnoticed.
func TestTakenAddressIsReplaced(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	name, prefix := newNetwork(t, docker)
	for _, ip := range []string{"2", "3"} {
		if err := hold(t, docker, name, prefix+ip); err != nil {
			t.Fatal(err)
		}
	}
	e := newFor(t, Options{Host: blindEngine(t, docker)})
	result, out, err := runSpec(t, e, map[string]any{"network": name, "ip": autoAddress, "command": "ip -4 addr show eth0"})
	if err != nil || result.ExitCode != 0 || !strings.Contains(out, "inet "+prefix+"4/") {
		t.Errorf("%+v, %v, %q", result, err, out)
	}
	_, _, err = runSpec(t, e, map[string]any{"network": name, "ip": prefix + "3", "command": "true"})
	if err == nil || executor.AsStartError(err) != nil {
		t.Errorf("%v; somebody else has the address, and that is the node's affair", err)
	}
}

// blindEngine returns the address of a proxy for the machine's engine that hides which of a
// network's addresses are in use.
func blindEngine(t *testing.T, docker *client.Client) string {
	t.Helper()
	return changedEngine(t, docker, func(r *http.Response) error {
		if r.StatusCode != http.StatusOK || !strings.Contains(r.Request.URL.Path, "/networks/") {
			return nil
		}
		return changeJSON(r, func(n map[string]any) { n["Containers"] = map[string]any{} })
	})
}

// changeJSON changes the object in a response.
func changeJSON(r *http.Response, change func(map[string]any)) error {
	var object map[string]any
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		return err
	}
	change(object)
	data, err := json.Marshal(object)
	r.Body.Close()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	r.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return err
}

// changedEngine returns the address of a proxy for the machine's engine. change modifies each
// response.
func changedEngine(t *testing.T, docker *client.Client, change func(*http.Response) error) string {
	t.Helper()
	return proxyOf(t, docker, change, func(*http.Request) {})
}

// proxyOf returns the address of a proxy for the machine's engine. before is called with each request before it is forwarded, and
// change modifies each response.
func proxyOf(t *testing.T, docker *client.Client, change func(*http.Response) error, before func(*http.Request)) string {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return docker.Dialer()(ctx) }}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine" },
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: change,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	t.Cleanup(transport.CloseIdleConnections)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return "tcp://" + server.Listener.Addr().String()
}

// TestPulledImageRuns runs an image from a registry and checks that the result names it.
func TestPulledImageRuns(t *testing.T) {
	t.Parallel()
	docker, y := enginetest.Engine(t), newFakeRegistry(t)
	name := y.host + "/tools/busybox:1"
	if err := docker.ImageTag(t.Context(), enginetest.Image(t), name); err != nil {
		t.Fatal(err)
	}
	loseImage(t, docker, name)
	pushed, err := docker.ImagePush(t.Context(), name, image.PushOptions{RegistryAuth: "e30="})
	if err != nil {
		t.Fatal(err)
	}
	if err := follow(pushed, newProgress(func(string) {}, time.Now)); err != nil {
		t.Fatal(err)
	}
	pushed.Close()
	if _, err := docker.ImageRemove(t.Context(), name, image.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	result, out, err := runSpec(t, newFor(t, Options{}), map[string]any{"image": name, "network": "none", "command": "echo hello"})
	if err != nil || out != "hello\n" {
		t.Fatalf("%+v, %v, %q", result, err, out)
	}
	pulled, err := docker.ImageInspect(t.Context(), name)
	if err != nil || !slices.Contains(pulled.RepoDigests, y.host+"/tools/busybox@"+result.Image) {
		t.Errorf("it ran %s, and %v was pulled, %v", result.Image, pulled.RepoDigests, err)
	}
}
