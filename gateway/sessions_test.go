package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/caller"
	"switchyard/activities/sessions/link"
	"switchyard/activities/sessions/wire"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
	"switchyard/gateway/tunnel"
	v1 "switchyard/proto/switchyard/v1"
)

// scriptedNode connects a node to a gateway. It answers an exec with a description of the request, and echoes
// connections.
func scriptedNode(t *testing.T, gateway, token, node string) *link.Link {
	t.Helper()
	l := link.Start(link.Options{
		Gateways: dialGateway(t, gateway, token), Node: node, Incarnation: "i1",
		Serve: func(_ context.Context, conn wire.Conn, h *v1.SessionHeader) {
			if h.GetUser() == "nobody" {
				wire.Refuse(conn, "not_found", "the attempt has no user nobody")
				return
			}
			_ = wire.WriteMessage(conn, &v1.SessionReply{Port: h.GetPort()})
			if h.GetKind() != "exec" {
				_, _ = io.Copy(conn, conn)
				return
			}
			text := fmt.Sprintf("%s %s#%d on %s by %s: %s", h.GetRunId(), h.GetTask(), h.GetClaim(), h.GetNode(), h.GetBy(), h.GetExec().GetCommand())
			_ = wire.WriteMessage(conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Stdout{Stdout: []byte(text)}})
			_ = wire.WriteMessage(conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Exit{Exit: &v1.SessionExit{Code: 7}}})
		},
	})
	t.Cleanup(l.Close)
	return l
}

// sessionClient is a connection for sessions.
type sessionClient struct{ session *wire.Session }

func dialSessions(t *testing.T, gateway, token string) (*sessionClient, error) {
	t.Helper()
	conn, err := wire.Dial(t.Context(), wire.DialOptions{URL: gateway, Path: tunnel.SessionsPath, Token: func() string { return token }})
	if err != nil {
		return nil, err
	}
	c := &sessionClient{wire.NewSession(conn, true)}
	t.Cleanup(func() { _ = c.session.Close() })
	return c, nil
}

func (c *sessionClient) open(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
	conn, err := c.session.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	reply, err := wire.Request(ctx, conn, h)
	return conn, reply, err
}

// inside returns the inside of a task of a run.
func (c *sessionClient) inside(run, task string) executor.Inside {
	return caller.New(func(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
		h.RunId, h.Task = run, task
		return c.open(ctx, h)
	})
}

// mustDial dials a gateway and fails the test on an error.
func mustDial(t *testing.T, gateway, token string) *sessionClient {
	t.Helper()
	c, err := dialSessions(t, gateway, token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func execIn(t *testing.T, in executor.Inside) (string, error) {
	t.Helper()
	var out strings.Builder
	status, err := in.Exec(t.Context(), executor.Command{Args: []string{"true"}, Stdout: &out})
	if err == nil && status.Code != 7 {
		t.Errorf("exit code %d", status.Code)
	}
	return out.String(), err
}

// echo sends a text to a port of a task of a scripted node, which sends it back.
func echo(t *testing.T, in executor.Inside) error {
	t.Helper()
	conn, err := in.Dial(t.Context(), 80)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "hello")
	_ = conn.(wire.Conn).CloseWrite()
	if got, err := io.ReadAll(conn); string(got) != "hello" || err != nil {
		return fmt.Errorf("%q, %w", got, err)
	}
	return nil
}

// serveTask submits a run whose task build runs on a connected node.
func (f *fixture) serveTask(t *testing.T, node, token string) (run string, l *link.Link) {
	t.Helper()
	run = f.submit(t, node, "build")
	startAttempt(t, run, node, "build", 3)
	l = scriptedNode(t, f.server.URL(), token, node)
	f.awaitLink(t, l, node)
	return run, l
}

// awaitLink waits until a node is connected. The gateway stores the location of a node after it has registered the link.
func (f *fixture) awaitLink(t *testing.T, l *link.Link, node string) {
	t.Helper()
	eventually(t, "node "+node+" is connected", func() bool {
		var at v1.LinkLocation
		return l.Connected() && f.config.Store.GetMessage(t.Context(), storekey.Link(node), &at) == nil && at.GetGateway() != ""
	})
}

func TestSessionReachesAttempt(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "session-reaches", "build", "test", "other", "each")
	const node = "session-node"
	startAttempt(t, id, node, "build", 3)
	f.awaitLink(t, scriptedNode(t, f.server.URL(), "", node), node)
	c := mustDial(t, f.server.URL(), "")
	for _, task := range []string{"build", ""} {
		got, err := execIn(t, c.inside(id, task))
		if want := id + " build#3 on " + node + " by : [true]"; err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	const attached = "session-attached"
	startAttempt(t, id, attached, "test", 4)
	l := link.Start(link.Options{
		Dial: func(context.Context) (net.Conn, error) { return f.Sessions().Attach(attached) }, Node: attached,
		Serve: func(_ context.Context, conn wire.Conn, h *v1.SessionHeader) {
			wire.Refuse(conn, "aborted", "served by "+h.GetNode())
		},
	})
	f.awaitLink(t, l, attached)
	if _, err := execIn(t, c.inside(id, "test")); err == nil || err.Error() != "served by "+attached {
		t.Errorf("a node of the process of the gateway: %v", err)
	}
	l.Close()
	if err := echo(t, c.inside(id, "build")); err != nil {
		t.Error(err)
	}
	startAttempt(t, id, node, "each[2]", 5)
	if got, err := execIn(t, c.inside(id, "each[2]")); err != nil || !strings.Contains(got, " each[2]#5 ") {
		t.Errorf("an instance: %q, %v", got, err)
	}
	startAttempt(t, id, node, "each[3]", 6)
	startAttempt(t, id, "session-node-without-link", "other", 7)
	for name, test := range map[string]struct {
		header *v1.SessionHeader
		code   connect.Code
		says   string
	}{
		"several tasks":    {&v1.SessionHeader{Kind: "exec", RunId: id}, connect.CodeInvalidArgument, "name one of build, each[2], each[3], other, test"},
		"several":          {&v1.SessionHeader{Kind: "exec", RunId: id, Task: "each"}, connect.CodeInvalidArgument, "task each of run " + id + " has 2 running attempts; name one of each[2], each[3]"},
		"unknown task":     {&v1.SessionHeader{Kind: "exec", RunId: id, Task: "biuld"}, connect.CodeNotFound, "did you mean build?"},
		"unknown run":      {&v1.SessionHeader{Kind: "exec", RunId: "no-such-run", Task: "build"}, connect.CodeNotFound, "no-such-run"},
		"no link":          {&v1.SessionHeader{Kind: "exec", RunId: id, Task: "other"}, connect.CodeUnavailable, "--gateway"},
		"no kind":          {&v1.SessionHeader{Kind: "rlogin", RunId: id, Task: "build"}, connect.CodeInvalidArgument, "rlogin"},
		"refused by node":  {&v1.SessionHeader{Kind: "exec", RunId: id, Task: "build", User: "nobody"}, connect.CodeNotFound, "no user nobody"},
		"escape sequences": {&v1.SessionHeader{Kind: "exec", RunId: "\x1b[2J", Task: "\x1b[2J"}, connect.CodeNotFound, "there is no run"},
	} {
		if test.header.Kind == "exec" {
			test.header.Exec = &v1.SessionExec{Command: []string{"true"}}
		}
		_, _, err := c.open(t.Context(), test.header)
		refused, ok := errors.AsType[*wire.RefusedError](err)
		if !ok || refused.Code != test.code.String() || !strings.Contains(refused.Message, test.says) || strings.Contains(refused.Message, "\x1b") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// awaitedNodes is a registry with one node. It calls onGet when the node is read.
type awaitedNodes struct {
	fakeNodes
	onGet func()
}

func (n *awaitedNodes) Get(ctx context.Context, name string) (*v1.Node, error) {
	n.onGet()
	return n.fakeNodes.Get(ctx, name)
}

// TestSessionWaitsForTheFirstLinkOfItsNode opens sessions on nodes without a link. A node that lives connects when the
// gateway has looked for it.
func TestSessionWaitsForTheFirstLinkOfItsNode(t *testing.T) {
	t.Parallel()
	for state, says := range map[string]string{v1.NodeActive: "", v1.NodeOffline: "is not connected to a gateway"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			node := "first-link-" + state
			var connect sync.Once
			var f *fixture
			nodes := &awaitedNodes{fakeNodes: fakeNodes{nodes: map[string]*v1.Node{node: {Name: node, State: state}}}}
			nodes.onGet = func() {
				connect.Do(func() {
					if state == v1.NodeActive {
						scriptedNode(t, f.server.URL(), "", node)
					}
				})
			}
			f = startConfigured(t, "mem://", Config{Nodes: nodes})
			id := f.submit(t, node, "build")
			startAttempt(t, id, node, "build", 3)
			_, err := execIn(t, mustDial(t, f.server.URL(), "").inside(id, "build"))
			if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
				t.Error(err)
			}
		})
	}
}

// TestSessionLeavesAGatewayThatDoesNotAnswer opens a session while the store still names an earlier gateway of the node, whose
// address takes connections and answers nothing. The node then connects to the gateway of the session.
func TestSessionLeavesAGatewayThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := start(t)
	const node = "session-moved"
	id := f.submit(t, node, "build")
	startAttempt(t, id, node, "build", 3)
	earlier, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = earlier.Close() }()
	at := &v1.LinkLocation{Gateway: "earlier", Url: "http://" + earlier.Addr().String(), ConnectedAt: timestamppb.Now()}
	if err := f.config.Store.PutMessage(t.Context(), storekey.Link(node), at); err != nil {
		t.Fatal(err)
	}
	connected := make(chan struct{})
	go func() {
		defer close(connected)
		conn, err := earlier.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
		scriptedNode(t, f.server.URL(), "", node)
	}()
	if _, err := execIn(t, mustDial(t, f.server.URL(), "").inside(id, "build")); err != nil {
		t.Error(err)
	}
	<-connected
}

func TestSessionIsForThoseWhoReachItsRun(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	ann, _ := f.token(t, "ann", v1.RoleUser)
	bob, _ := f.token(t, "bob", v1.RoleUser)
	eve, _ := f.token(t, "eve", v1.RoleViewer)
	op, _ := f.token(t, "op", v1.RoleOperator)
	root, _ := f.token(t, "root", v1.RoleAdmin)
	const node = "session-locked"
	f.client = f.dialAs(t, ann)
	id, _ := f.serveTask(t, node, f.nodeToken(t, node))
	for token, who := range map[string]string{ann: "ann", op: "op"} {
		got, err := execIn(t, mustDial(t, f.server.URL(), token).inside(id, ""))
		if err != nil || !strings.Contains(got, " by "+who+":") {
			t.Errorf("%s: %q, %v", who, got, err)
		}
	}
	_, err := execIn(t, mustDial(t, f.server.URL(), bob).inside(id, ""))
	if refused, ok := errors.AsType[*wire.RefusedError](err); !ok || refused.Code != "not_found" || !strings.Contains(refused.Message, "there is no run") {
		t.Errorf("another user: %v", err)
	}
	for what, test := range map[string]struct {
		token  string
		status int
	}{"a viewer": {eve, http.StatusForbidden}, "a node": {f.nodeToken(t, node), http.StatusForbidden}, "no token": {"", http.StatusUnauthorized}} {
		_, err := dialSessions(t, f.server.URL(), test.token)
		if refused, ok := errors.AsType[*wire.RefusedError](err); !ok || refused.Status != test.status {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, token := range map[string]string{"another node": f.nodeToken(t, "other"), "an admin": root, "no token": ""} {
		conn, err := wire.Dial(t.Context(), wire.DialOptions{URL: f.server.URL(), Path: tunnel.LinksPath, Token: func() string { return token }, Header: http.Header{link.NodeHeader: {node}}})
		if err == nil {
			_ = conn.Close()
			t.Errorf("%s connects as the node", what)
		}
	}
	if _, err := wire.Dial(t.Context(), wire.DialOptions{URL: f.server.URL(), Path: tunnel.PeersPath, Token: func() string { return root }}); err == nil {
		t.Error("an admin connects as a gateway")
	}
	results, opened := map[string]string{}, map[string]bool{}
	eventually(t, "the audit has the sessions", func() bool {
		for _, e := range f.auditEntries(t, root, &v1.ListAuditEntriesRequest{What: "session exec", Object: id}) {
			isOpening := e.GetAction() == "session exec opened"
			if isOpening {
				opened[e.GetBy()] = true
			} else {
				results[e.GetBy()] = e.GetResult()
			}
			if e.GetResult() == v1.AuditOK && (e.GetObjects()["task"] != "build" || e.GetObjects()["node"] != node || (e.GetLasted() == nil) != isOpening || (e.GetReceivedBytes() == 0) != isOpening) {
				t.Errorf("entry %v", e)
			}
		}
		return results["ann"] == v1.AuditOK && results["op"] == v1.AuditOK && results["bob"] == "not_found" && opened["ann"] && opened["op"]
	})
	if opened["bob"] {
		t.Error("a session of another user was opened")
	}
}

// TestSessionChangesNoApprovedTask opens sessions of every kind in tasks of a run that needs an approval. Only an operator enters a
// task that is no machine.
func TestSessionChangesNoApprovedTask(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir(), func(c *Config) { c.ApproveUserRuns = true })
	ann, _ := f.token(t, "ann", v1.RoleUser)
	op, _ := f.token(t, "op", v1.RoleOperator)
	const node = "session-approved"
	f.client = f.dialAs(t, ann)
	id := f.submitDocument(t, "name: approved\ntasks: {build: {type: shell, spec: {command: make}}, desk: {type: vps, spec: {image: debian}, parallel: 2}}")
	startAttempt(t, id, node, "build", 3)
	startAttempt(t, id, node, "desk[1]", 4)
	f.awaitLink(t, scriptedNode(t, f.server.URL(), f.nodeToken(t, node), node), node)
	for kind, isOpen := range map[string]bool{
		wire.KindExec: false, wire.KindConnect: true, wire.KindListen: false, wire.KindSFTP: false, wire.KindReadTar: true, wire.KindWriteTar: false,
	} {
		for _, test := range []struct {
			token, task string
			isOpen      bool
		}{{ann, "build", isOpen}, {ann, "desk[1]", true}, {op, "build", true}} {
			header := &v1.SessionHeader{Kind: kind, RunId: id, Task: test.task, Port: 80, Path: "x", Exec: &v1.SessionExec{Command: []string{"true"}}}
			conn, _, err := mustDial(t, f.server.URL(), test.token).open(t.Context(), header)
			if err == nil {
				_ = conn.Close()
			}
			refused, _ := errors.AsType[*wire.RefusedError](err)
			if test.isOpen && err != nil || !test.isOpen && (refused == nil || refused.Code != "permission_denied" || !strings.Contains(refused.Message, "ask an operator to open it")) {
				t.Errorf("%s in %s, as an operator: %t: %v", kind, test.task, test.token == op, err)
			}
		}
	}
}

// TestSessionIsForwardedToGatewayOfNode uses two gateways with one store, and a node that moves from one to the
// other.
func TestSessionIsForwardedToGatewayOfNode(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	f, second := startIn(t, dir), startIn(t, dir)
	id := f.submit(t, "session-forwarded", "build")
	const node = "session-forwarded"
	startAttempt(t, id, node, "build", 3)
	l := link.Start(link.Options{
		Gateways: dialGateway(t, second.server.URL()+","+f.server.URL(), ""), Node: node, Serve: func(_ context.Context, conn wire.Conn, _ *v1.SessionHeader) {
			_ = wire.WriteMessage(conn, &v1.SessionReply{})
			_, _ = io.Copy(conn, conn)
		},
	})
	t.Cleanup(l.Close)
	second.awaitLink(t, l, node)
	c := mustDial(t, f.server.URL(), "")
	eventually(t, "the location of the node is stored", func() bool { return echo(t, c.inside(id, "build")) == nil })
	conn, err := c.inside(id, "build").Dial(t.Context(), 80)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := second.server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err == nil || !strings.Contains(err.Error(), "the gateway is shutting down") {
		t.Errorf("a session through a gateway that closes: %v", err)
	}
	eventually(t, "the node has moved", func() bool { return echo(t, c.inside(id, "build")) == nil })
}

func TestSessionEndsWithItsReason(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	op, token := f.token(t, "op", v1.RoleOperator)
	root, _ := f.token(t, "root", v1.RoleAdmin)
	f.client = f.dialAs(t, root)
	const node = "session-ends"
	id, l := f.serveTask(t, node, f.nodeToken(t, node))
	dial := func(token string) io.Reader {
		t.Helper()
		conn, err := mustDial(t, f.server.URL(), token).inside(id, "").Dial(t.Context(), 80)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	ends := func(conn io.Reader, reason string) {
		t.Helper()
		if _, err := io.ReadAll(conn); !errors.Is(err, wire.ErrLost) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v, want %s", err, reason)
		}
	}
	revoked := dial(op)
	if _, err := f.config.Tokens.Revoke(t.Context(), token.GetId(), "root"); err != nil {
		t.Fatal(err)
	}
	ends(revoked, "revoked")
	open := dial(root)
	l.Close()
	ends(open, "the worker of node session-ends is shutting down")
	f.awaitLink(t, scriptedNode(t, f.server.URL(), f.nodeToken(t, node), node), node)
	open = dial(root)
	go func() { _ = f.server.Close() }()
	ends(open, "the gateway is shutting down")
}

// TestLongGatewayCarriesManySessions opens 200 sessions concurrently, and then holds 500 idle ones, each on its own connection.
func TestLongGatewayCarriesManySessions(t *testing.T) {
	testneeds.Long(t)
	f := start(t)
	const logins, idle = 200, 500
	id, _ := f.serveTask(t, "session-many", "")
	before := heap()
	var work sync.WaitGroup
	for range logins {
		work.Go(func() {
			c, err := dialSessions(t, f.server.URL(), "")
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := execIn(t, c.inside(id, "build")); err != nil {
				t.Error(err)
			}
			_ = c.session.Close()
		})
	}
	work.Wait()
	for range idle {
		if _, err := mustDial(t, f.server.URL(), "").inside(id, "build").Dial(t.Context(), 80); err != nil {
			t.Fatal(err)
		}
	}
	// The clients and the node are part of this process too.
	grown := int64(heap()) - int64(before)
	t.Logf("%d idle sessions take %.1f MiB, with their clients and nodes", idle, float64(grown)/(1<<20))
	if grown > 100<<20 {
		t.Errorf("%d idle sessions take %d bytes", idle, grown)
	}
	const most = 1024
	more := mustDial(t, f.server.URL(), "").inside(id, "build")
	opened := idle
	eventually(t, "the caller has as many sessions as it may have", func() bool { // the gateway may still count sessions of the logins
		var err error
		for ; opened <= most; opened++ {
			if _, err = more.Dial(t.Context(), 80); err != nil {
				break
			}
		}
		if refused, ok := errors.AsType[*wire.RefusedError](err); !ok || refused.Code != "resource_exhausted" {
			t.Fatalf("one caller opens %d sessions: %v", opened, err)
		}
		return opened == most
	})
}

// heap returns the memory in use after a collection, including stacks.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
