package web

import (
	"bufio"
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"connectrpc.com/authn"
	"google.golang.org/protobuf/proto"

	"switchyard/dev/servicetest"
	"switchyard/gateway/auth"
	"switchyard/gateway/web/live"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

func TestResponsesForbidForeignContent(t *testing.T) {
	v := newVisitor(t, &servicetest.Fake{}, v1.RoleViewer)
	for _, address := range []string{"/ui/login", "/ui/nothing", assetURL("page.js"), "/ui/live"} {
		a := v.do(http.MethodGet, address, nil, "text/html")
		policy := a.header.Get("Content-Security-Policy")
		mustContain(t, policy, "default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'")
		mustNotContain(t, policy, "unsafe", "http")
		if a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", address, a.header)
		}
	}
}

func TestScriptIsSmall(t *testing.T) {
	total := 0
	err := fs.WalkDir(assetFiles, "assets", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".js") {
			info, _ := d.Info()
			total += int(info.Size())
		}
		return err
	})
	if err != nil || total == 0 || total > 120<<10 {
		t.Errorf("%d bytes of script, %v", total, err)
	}
}

func TestAssetsAreKeptByTheirBuild(t *testing.T) {
	v := newVisitor(t, &servicetest.Fake{}, v1.RoleViewer)
	for address, want := range map[string]struct {
		status int
		cache  string
	}{
		assetURL("page.js"):          {http.StatusOK, "public, max-age=31536000, immutable"},
		assetsPath + "older/page.js": {http.StatusOK, "no-cache"},
		assetURL("nothing.js"):       {http.StatusNotFound, ""},
		assetURL(""):                 {http.StatusNotFound, ""},
		assetURL("%2e%2e/web.go"):    {http.StatusNotFound, ""},
		assetsPath + build:           {http.StatusNotFound, ""},
	} {
		a := v.do(http.MethodGet, address, nil, "*/*")
		if a.status != want.status || want.cache != "" && a.header.Get("Cache-Control") != want.cache {
			t.Errorf("%s: %d, %q", address, a.status, a.header.Get("Cache-Control"))
		}
	}
}

func TestCallerWithoutTokenIsLedToLogin(t *testing.T) {
	v := newVisitor(t, &servicetest.Fake{}, v1.RoleViewer)
	v.token = "nonsense"
	a := v.do(http.MethodGet, "/ui/runs?state=failed", nil, "text/html")
	if want := "/ui/login?next=%2Fui%2Fruns%3Fstate%3Dfailed"; a.status != http.StatusSeeOther || a.header.Get("Location") != want {
		t.Errorf("%d %s, want %s", a.status, a.header.Get("Location"), want)
	}
	if a := v.do(http.MethodGet, "/ui/live?view=/&at=", nil, "text/event-stream"); a.status != http.StatusUnauthorized {
		t.Errorf("the stream: %d", a.status)
	}
	if a := v.do(http.MethodPost, "/ui/actions/cancel-run", url.Values{"run": {"a"}}, "application/json"); a.status != http.StatusUnauthorized {
		t.Errorf("an action: %d", a.status)
	}
}

// logInWith submits the login form.
func (v *visitor) logInWith(token, next string) answered {
	form := v.get("/ui/login?" + url.Values{"next": {next}}.Encode())
	values := url.Values{"token": {token}}
	for _, field := range form.all(`form[action="/ui/login"] input[type="hidden"]`) {
		values.Set(attribute(field, "name"), attribute(field, "value"))
	}
	return v.do(http.MethodPost, "/ui/login", values, "text/html")
}

func TestLogInKeepsTheTokenInACookie(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunsProcedure, &v1.ListRunsResponse{})
	v := newVisitor(t, f, "")
	v.token = ""
	if a := v.logInWith("sy_nobody", "/"); a.status != http.StatusUnauthorized || !strings.Contains(a.text(".error-text"), "not known") {
		t.Errorf("a wrong token: %d %s", a.status, a.text(".error-text"))
	}
	if a := v.logInWith(strings.Repeat("x", 5000), "/"); a.status != http.StatusUnauthorized || !strings.Contains(a.text(".error-text"), "5000 bytes") {
		t.Errorf("a long token: %d %s", a.status, a.text(".error-text"))
	}
	if a := v.logInWith("sy_operator", "/ui/runs"); a.status != http.StatusSeeOther || a.header.Get("Location") != "/ui/runs" {
		t.Fatalf("the log-in: %d %v", a.status, a.header)
	}
	page := v.withoutHeader().get("/ui/runs")
	mustContain(t, page.text("header"), "operator")
	out := url.Values{"form": {attribute(page.all(`form[action="/ui/logout"] input`)[0], "value")}}
	if a := v.do(http.MethodPost, "/ui/logout", out, "text/html"); a.status != http.StatusSeeOther {
		t.Errorf("the log-out: %d", a.status)
	}
	if a := v.do(http.MethodGet, "/ui/runs", nil, "text/html"); a.status != http.StatusSeeOther {
		t.Errorf("after the log-out: %d", a.status)
	}
}

// withoutHeader makes the browser authenticate by its cookies only.
func (v *visitor) withoutHeader() *visitor {
	next := v.handler
	v.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
	return v
}

func TestLoginRedirectsOnlyToLocalPages(t *testing.T) {
	for next, want := range map[string]string{
		"/": "/", "/ui/runs?state=failed": "/ui/runs?state=failed", "https://evil.example/": "/", "//evil.example/ui/": "/", "/ui/..//evil.example": "/",
		`/\evil.example`: "/", "/ui/login?next=/": "/", "": "/", "javascript:alert(1)": "/", "/v1/runs": "/",
	} {
		v := newVisitor(t, &servicetest.Fake{}, "")
		v.token = ""
		if a := v.logInWith("sy_user", next); a.header.Get("Location") != want {
			t.Errorf("%q leads to %q, want %q", next, a.header.Get("Location"), want)
		}
	}
}

func TestActionNeedsAFormOfThePage(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceCancelRunProcedure, &v1.CancelRunResponse{Id: "a"})
	v := newVisitor(t, f, v1.RoleUser)
	form := url.Values{"run": {"a"}, "confirmed": {"yes"}}
	if a := v.do(http.MethodPost, "/ui/actions/cancel-run", form, "application/json"); a.status != http.StatusBadRequest || !strings.Contains(a.message(), "reload the page") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := servicetest.Requests[v1.CancelRunRequest](f); len(got) != 0 {
		t.Errorf("calls %v", got)
	}
}

// TestHostileTextsAreHarmless fills every text of some views with one that breaks pages without escaping.
func TestHostileTextsAreHarmless(t *testing.T) {
	f, run := &servicetest.Fake{}, exampleRun()
	run.Error, run.Problem, run.SubmittedBy, run.Reason, run.Batch, run.Parent = hostile, hostile, hostile, hostile, hostile, hostile
	for _, task := range run.GetTasks() {
		task.Error, task.Notice, task.Node = hostile, hostile, hostile
	}
	serveRun(f, run) <- &v1.WatchRunResponse{Run: proto.CloneOf(run), TaskCount: 4}
	servicetest.AnswerWith(f, listRuns, &v1.ListRunsResponse{NextPageToken: hostile, Items: []*v1.Run{{
		Id: hostile, Name: hostile, State: v1.RunRunning, SubmittedBy: hostile, Problem: hostile, Error: hostile, Parent: hostile, Batch: hostile, Trigger: hostile,
	}}})
	servicetest.AnswerWith(f, getQueue, &v1.GetQueueResponse{Tasks: 1, Warnings: []string{hostile}, Groups: []*v1.QueueGroup{{
		Reason: v1.WaitBusy, Text: hostile, Type: hostile, Count: 1, Demand: &v1.TaskDemand{Constraints: []string{hostile}}, Examples: []*v1.ListedTask{{Run: hostile, Task: hostile}},
	}}})
	servicetest.AnswerWith(f, listTasksCall, &v1.ListTasksResponse{})
	node := &v1.Node{
		Name: hostile, State: v1.NodeStale, Reason: hostile, Labels: []string{hostile}, Capabilities: map[string]string{hostile: hostile}, Executors: []string{hostile}, Machine: hostile,
		Snapshot: &v1.NodeSnapshot{Withheld: map[string]string{hostile: hostile}, Gpus: []*v1.GpuSnapshot{{Name: hostile}}, Running: []*v1.RunningAttempt{{RunId: hostile, Task: hostile}}},
	}
	servicetest.AnswerWith(f, listNodes, &v1.ListNodesResponse{Items: []*v1.Node{node}})
	servicetest.AnswerWith(f, getNode, &v1.GetNodeResponse{Node: node})
	servicetest.AnswerWith(f, getNodeWorkers, &v1.GetNodeWorkersResponse{})
	v := newVisitor(t, f, v1.RoleAdmin)
	for _, address := range []string{"/ui/runs", "/ui/runs/nightly-1", "/ui/queue", "/ui/nodes", "/ui/nodes/x"} {
		page := v.get(address)
		mustBeHarmless(t, page)
		mustContain(t, page.text("main"), `"><script>alert(1)</script>`)
	}
}

func TestRefusedAddresses(t *testing.T) {
	f := withWorkflow(t, releaseDocument)
	fakeTask(f, "build", &v1.Task{})
	v := newVisitor(t, f, v1.RoleViewer)
	for _, test := range []struct {
		method, address string
		status          int
		says            string
	}{
		{http.MethodGet, "/ui/runs?stat=failed", http.StatusBadRequest, `"stat"`},
		{http.MethodGet, "/ui/runs?since=yesterday", http.StatusBadRequest, "yesterday"},
		{http.MethodGet, "/ui/runs/ci-1/tasks/build/log/search?from=0", http.StatusBadRequest, "from"},
		{http.MethodGet, "/ui/nodes", http.StatusNotImplemented, "not implemented"}, // the fake lacks the call
		{http.MethodGet, "/ui/" + url.PathEscape(hostile), http.StatusNotFound, ""},
		{http.MethodGet, "/ui/runs/ci-1/tasks/biuld", http.StatusNotFound, ""},
		{http.MethodGet, "/ui/runs/ci-1/tasks/build/download/else", http.StatusNotFound, ""},
		{http.MethodGet, "/ui/workflows/other", http.StatusNotFound, ""},
		{http.MethodPost, "/ui/workflows/other", http.StatusNotFound, ""},
	} {
		a := v.do(test.method, test.address, nil, "text/html")
		if a.status != test.status || a.text("h1") == "" || !strings.Contains(a.text(".error-text"), test.says) {
			t.Errorf("%s %s: %d %s", test.method, test.address, a.status, a.text("main"))
		}
		mustBeHarmless(t, a)
	}
}

func TestCallersWithDifferentRightsShareNoView(t *testing.T) {
	isPersonal := false
	req := func(name string, role v1.Role) string {
		return request{path: "/ui/runs", query: url.Values{}, caller: &auth.Principal{Name: name, Role: role}, isPersonal: isPersonal}.key()
	}
	if req("ann", v1.Role_ROLE_USER) == req("bob", v1.Role_ROLE_USER) {
		t.Error("two users share a view")
	}
	if req("ann", v1.Role_ROLE_OPERATOR) == req("ann", v1.Role_ROLE_ADMIN) {
		t.Error("an operator and an admin share a view")
	}
	if req("ann", v1.Role_ROLE_OPERATOR) != req("bob", v1.Role_ROLE_OPERATOR) {
		t.Error("two operators share no view")
	}
	if isPersonal = true; req("ann", v1.Role_ROLE_OPERATOR) == req("bob", v1.Role_ROLE_OPERATOR) {
		t.Error("two operators share a personal view")
	}
}

// openLive returns the lines of a stream of views.
func openLive(t *testing.T, handler http.Handler, query url.Values) *bufio.Scanner {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/ui/live?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer sy_operator")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("%s: %s", res.Status, got)
	}
	return bufio.NewScanner(res.Body)
}

// TestStreamSendsWhatChanges follows a changing view, an unknown view and a foreign address in one stream.
func TestStreamSendsWhatChanges(t *testing.T) {
	f := &servicetest.Fake{}
	runs := &v1.ListRunsResponse{Items: []*v1.Run{{Id: "a-1", Name: "a", State: v1.RunRunning}}}
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunsProcedure, runs)
	v := newVisitor(t, f, v1.RoleOperator)
	page := v.get("/ui/runs")
	version := attribute(page.all("body")[0], "data-version")
	lines := openLive(t, v.handler, url.Values{"view": {"/ui/runs", "/ui/nothing", "https://evil.example/"}, "at": {version, "", ""}})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunsProcedure, &v1.ListRunsResponse{Items: []*v1.Run{{Id: "a-1", Name: "a", State: v1.RunFailed}}})
	seen := map[string]string{}
	event := ""
	for (len(seen) < 4 || !strings.Contains(seen["view"], v1.RunFailed)) && lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			key := event
			if strings.Contains(data, "evil") {
				key += " evil"
			}
			seen[key] = data
		}
	}
	mustContain(t, seen["hello"], build)
	mustContain(t, seen["failed"], `"not_found"`, "/ui/nothing")
	mustContain(t, seen["failed evil"], `"invalid_argument"`)
	mustContain(t, seen["view"], `"/ui/runs"`, "run-a-1", v1.RunFailed)
}

// revocable authenticates any token until revoked is closed.
type revocable struct{ revoked chan struct{} }

// Authenticate implements auth.Authenticator.
func (a revocable) Authenticate(context.Context, string) (*auth.Principal, error) {
	select {
	case <-a.revoked:
		return nil, authn.Errorf("the token is revoked")
	default:
		return &auth.Principal{Name: "ann", Role: v1.Role_ROLE_OPERATOR, Kind: auth.KindToken}, nil
	}
}

func TestStreamOfRevokedTokenSaysSoAndEnds(t *testing.T) {
	f, lock := &servicetest.Fake{}, revocable{make(chan struct{})}
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunsProcedure, &v1.ListRunsResponse{})
	feeds := live.NewFeeds()
	t.Cleanup(feeds.Close)
	config := newVisitorConfig(t, f, feeds)
	config.Lock = auth.Lock{Authenticator: lock, Recheck: time.Millisecond}
	var all strings.Builder
	for lines := openLive(t, New(config).Wrap(http.NotFoundHandler()), url.Values{"view": {"/ui/runs"}, "at": {""}}); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if lines.Text() == "event: view" {
			close(lock.revoked)
		}
	}
	mustContain(t, all.String(), "event: failed", `"unauthenticated"`, "revoked")
}
