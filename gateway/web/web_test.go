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

	"switchyard/gateway/auth"
	"switchyard/gateway/web/live"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

func TestResponsesForbidForeignContent(t *testing.T) {
	v := newVisitor(t, newFakeServices(), v1.RoleViewer)
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
	v := newVisitor(t, newFakeServices(), v1.RoleViewer)
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
	v := newVisitor(t, newFakeServices(), v1.RoleViewer)
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
	f := newFakeServices()
	answerWith(f, switchyardv1connect.RunServiceListRunsProcedure, &v1.ListRunsResponse{})
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
		v := newVisitor(t, newFakeServices(), "")
		v.token = ""
		if a := v.logInWith("sy_user", next); a.header.Get("Location") != want {
			t.Errorf("%q leads to %q, want %q", next, a.header.Get("Location"), want)
		}
	}
}

func TestActionNeedsAFormOfThePage(t *testing.T) {
	f := newFakeServices()
	answerWith(f, switchyardv1connect.RunServiceCancelRunProcedure, &v1.CancelRunResponse{Id: "a"})
	v := newVisitor(t, f, v1.RoleUser)
	form := url.Values{"run": {"a"}, "confirmed": {"yes"}}
	if a := v.do(http.MethodPost, "/ui/actions/cancel-run", form, "application/json"); a.status != http.StatusBadRequest || !strings.Contains(a.message(), "reload the page") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := requestsOf[v1.CancelRunRequest](f, switchyardv1connect.RunServiceCancelRunProcedure); len(got) != 0 {
		t.Errorf("calls %v", got)
	}
}

func TestPageRefusesUnknownParameters(t *testing.T) {
	v := newVisitor(t, newFakeServices(), v1.RoleViewer)
	a := v.do(http.MethodGet, "/ui/runs?stat=failed", nil, "text/html")
	if a.status != http.StatusBadRequest || !strings.Contains(a.text(".error-text"), `"stat"`) {
		t.Errorf("%d %s", a.status, a.text("main"))
	}
}

func TestErrorsOfCallsAreShown(t *testing.T) {
	f := newFakeServices()
	v := newVisitor(t, f, v1.RoleViewer)
	a := v.do(http.MethodGet, "/ui/runs", nil, "text/html") // the fake does not implement the call
	if a.status != http.StatusNotImplemented || a.text("h1") == "" || a.text(".error-text") == "" {
		t.Errorf("%d %s", a.status, a.text("main"))
	}
	if a := v.do(http.MethodGet, "/ui/"+url.PathEscape(hostile), nil, "text/html"); a.status != http.StatusNotFound {
		t.Errorf("%d", a.status)
	} else {
		mustBeHarmless(t, a)
	}
}

func TestCallersWithDifferentRightsShareNoView(t *testing.T) {
	req := func(name string, role v1.Role) string {
		return request{path: "/ui/runs", query: url.Values{}, caller: &auth.Principal{Name: name, Role: role}}.key()
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
}

// TestStreamSendsWhatChanges follows a changing view, an unknown view and a foreign address in one stream.
func TestStreamSendsWhatChanges(t *testing.T) {
	f := newFakeServices()
	runs := &v1.ListRunsResponse{Items: []*v1.Run{{Id: "a-1", Name: "a", State: v1.RunRunning}}}
	answerWith(f, switchyardv1connect.RunServiceListRunsProcedure, runs)
	v := newVisitor(t, f, v1.RoleOperator)
	page := v.get("/ui/runs")
	version := attribute(page.all("body")[0], "data-version")
	server := httptest.NewServer(v.handler)
	defer server.Close()
	query := url.Values{"view": {"/ui/runs", "/ui/nothing", "https://evil.example/"}, "at": {version, "", ""}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/ui/live?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer sy_operator")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("%s: %s", res.Status, got)
	}
	answerWith(f, switchyardv1connect.RunServiceListRunsProcedure, &v1.ListRunsResponse{Items: []*v1.Run{{Id: "a-1", Name: "a", State: v1.RunFailed}}})
	seen := map[string]string{}
	event := ""
	for lines := bufio.NewScanner(res.Body); (len(seen) < 4 || !strings.Contains(seen["view"], v1.RunFailed)) && lines.Scan(); {
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
	f, lock := newFakeServices(), revocable{make(chan struct{})}
	answerWith(f, switchyardv1connect.RunServiceListRunsProcedure, &v1.ListRunsResponse{})
	feeds := live.NewFeeds()
	t.Cleanup(feeds.Close)
	config := newVisitorConfig(t, f, feeds)
	config.Lock = auth.Lock{Authenticator: lock, Recheck: time.Millisecond}
	server := httptest.NewServer(New(config).Wrap(http.NotFoundHandler()))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/ui/live?view=/ui/runs&at=", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer sy_ann")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var all strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if lines.Text() == "event: view" {
			close(lock.revoked)
		}
	}
	mustContain(t, all.String(), "event: failed", `"unauthenticated"`, "revoked")
}
