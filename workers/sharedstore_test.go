package workers_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workers"
	"switchyard/workers/workertest"

	"connectrpc.com/connect"
)

func openStore(t *testing.T, location string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestNodeWithoutTheFleetsStoreGetsNoTasks starts a node with its own store and one whose gateway does not answer. The
// registry shows the reason, and tasks that only they could run wait for a node that shares the store.
func TestNodeWithoutTheFleetsStoreGetsNoTasks(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("private", func(cfg *workers.NodeConfig) { cfg.Store = openStore(t, "mem://") })
	c.Start("astray", func(cfg *workers.NodeConfig) { cfg.Store = openStore(t, "http://127.0.0.1:1") })
	reg := registry.New(c.Conn).WithStore(c.Store.Identity)
	for short, want := range map[string]string{"private": registry.OtherStore, "astray": "its store http://127.0.0.1:1 cannot be used"} {
		var n *v1.Node
		workertest.Eventually(t, short+" beats", func() bool {
			var err error
			n, err = reg.Get(t.Context(), c.Name(short))
			return err == nil && n.GetLastBeatAt() != nil
		})
		if n.GetState() != "stale" || !strings.Contains(n.GetReason(), want) {
			t.Errorf("%s is %s: %q, want stale: %q", short, n.GetState(), n.GetReason(), want)
		}
	}
	workertest.Eventually(t, "the leader knows both", func() bool { return c.Control.Knows(c.Name("private")) && c.Control.Knows(c.Name("astray")) })
	h := c.Submit(c.Input(`{name: private, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`))
	h.AwaitTask("a", func(task *v1.Task) bool { return task.GetState() == "queued" })
	c.Start("shared")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	for name, task := range run.GetTasks() {
		if task.GetNode() != c.Name("shared") {
			t.Errorf("%s ran on %s", name, task.GetNode())
		}
	}
}

// TestControlProcessNeedsTheFleetsStore starts control processes with another store beside a live leader and, after
// that has stopped, one with a private store.
func TestControlProcessNeedsTheFleetsStore(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{Role: workers.RoleLeader})
	other := y.Config
	other.Store, other.Role, other.Logger = openStore(t, "mem://"), workers.RoleAuto, slog.New(slog.DiscardHandler)
	if c, err := workers.StartControl(t.Context(), other); err == nil || !strings.Contains(err.Error(), "another store") || !strings.Contains(err.Error(), "--store") {
		t.Errorf("beside the leader: %v", err)
		if err == nil {
			c.Stop()
		}
	}
	y.Control.Stop()
	other.PrivateStore = true
	if c, err := workers.StartControl(t.Context(), other); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("with a private store, after the leader: %v", err)
		if err == nil {
			c.Stop()
		}
	}
	other.PrivateStore = false
	c, err := workers.StartControl(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	workertest.Eventually(t, "a gateway with a new store takes over", c.IsLeader)
}

// TestControlProcessRefusesTheStoreOfAnotherCluster starts a control process with a store that another cluster claimed.
func TestControlProcessRefusesTheStoreOfAnotherCluster(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	dir := t.TempDir()
	owner := openStore(t, dir)
	owner.ClaimFor("another-cluster", "test")
	if _, err := owner.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := y.Config
	cfg.Store = openStore(t, dir)
	cfg.Store.ClaimFor(y.Conn.Fleet, "test")
	c, err := workers.StartControl(t.Context(), cfg)
	if !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), "--store") {
		t.Errorf("the error is %v", err)
	}
	if err == nil {
		c.Stop()
	}
}

// identityGateway answers the calls with which nodes identify the store of a gateway.
type identityGateway struct {
	switchyardv1connect.UnimplementedBlobServiceHandler
	identity func() string
}

func (g identityGateway) GetBlob(_ context.Context, req *connect.Request[v1.GetBlobRequest]) (*connect.Response[v1.GetBlobResponse], error) {
	if req.Msg.GetKey() != store.IdentityKey {
		return nil, connect.NewError(connect.CodeNotFound, store.ErrNotFound)
	}
	return connect.NewResponse(&v1.GetBlobResponse{Data: []byte(g.identity())}), nil
}

// serveIdentity serves a gateway whose store has an identity, at an address or at a free port.
func serveIdentity(t *testing.T, address string, identity func() string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(switchyardv1connect.NewBlobServiceHandler(identityGateway{identity: identity}))
	server := httptest.NewUnstartedServer(mux)
	if address != "" {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = server.Listener.Close()
		server.Listener = listener
	}
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// TestNodeIsStaleWhileNoGatewayOfItsStoreAnswers starts a node with gateways of another fleet and of its own. It stops those of
// its own, so that only the other store is left, and starts one again.
func TestNodeIsStaleWhileNoGatewayOfItsStoreAnswers(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	id, err := c.Store.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := func() string { return id }
	other, a, b := serveIdentity(t, "", func() string { return "strange" }), serveIdentity(t, "", own), serveIdentity(t, "", own)
	list, err := gatewayclient.Parse(strings.Join([]string{other.URL, a.URL, b.URL}, ","))
	if err != nil {
		t.Fatal(err)
	}
	conn := gatewayclient.New(list, gatewayclient.Options{Identify: store.GatewayIdentity})
	defer conn.Close()
	c.Start("gateways", func(cfg *workers.NodeConfig) {
		cfg.Gateways = conn
		if cfg.Store, err = store.OpenWith(t.Context(), list.String(), store.Options{Gateways: conn}); err != nil {
			t.Fatal(err)
		}
	})
	reg := registry.New(c.Conn).WithStore(c.Store.Identity)
	await := func(what, state string, reasons ...string) {
		t.Helper()
		workertest.Eventually(t, what, func() bool {
			n, err := reg.Get(t.Context(), c.Name("gateways"))
			return err == nil && n.GetState() == state && !slices.ContainsFunc(reasons, func(reason string) bool { return !strings.Contains(n.GetReason(), reason) })
		})
	}
	await("the node leaves the gateway of another fleet", v1.NodeActive)
	a.Close()
	workertest.Eventually(t, "the node uses the other gateway of its fleet", func() bool {
		gateway, _ := conn.InUse()
		return gateway == b.URL
	})
	cut := time.Now()
	b.Close()
	await("the node is stale", v1.NodeStale, other.URL+": it has the store strange, but the fleet has the store "+id, a.URL+": its store cannot be identified", b.URL)
	t.Logf("stale after %s", time.Since(cut))
	serveIdentity(t, strings.TrimPrefix(a.URL, "http://"), own)
	await("the node is active again", v1.NodeActive)
}
