package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/html"

	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	"switchyard/gateway/edge"
	"switchyard/gateway/web/live"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// testNow is the current time in tests of views.
var testNow = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// roleTokens authenticates the tokens "sy_viewer", "sy_user" and so on as principals named after their roles.
type roleTokens struct{}

// Authenticate implements auth.Authenticator.
func (roleTokens) Authenticate(_ context.Context, bearer string) (*auth.Principal, error) {
	word := strings.TrimPrefix(bearer, "sy_")
	if role := v1.ParseRole(word); role != v1.Role_ROLE_UNSPECIFIED {
		return &auth.Principal{Name: word, Role: role, Kind: auth.KindToken, ID: word}, nil
	}
	return nil, connect.NewError(connect.CodeUnauthenticated, errors.New("the token is not known"))
}

// patiently runs a test on a clock that advances only while all goroutines wait. A page waits briefly for parts that are
// read in the background, which a busy machine may exceed otherwise.
func patiently(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// visitor is a logged-in browser.
type visitor struct {
	t       *testing.T
	handler http.Handler
	token   string
	cookies map[string]*http.Cookie
}

// newVisitor returns a browser of a caller with a role, such as v1.RoleUser, on a page that calls f.
func newVisitor(t *testing.T, f *servicetest.Fake, role string, changes ...func(*Config)) *visitor {
	t.Helper()
	feeds := live.NewFeeds()
	t.Cleanup(feeds.Close)
	c := newVisitorConfig(t, f, feeds)
	for _, change := range changes {
		change(&c)
	}
	w := New(c)
	return &visitor{t, w.Wrap(http.NotFoundHandler()), "sy_" + role, map[string]*http.Cookie{}}
}

// newVisitorConfig returns the config of a page that calls f.
func newVisitorConfig(t *testing.T, f *servicetest.Fake, feeds *live.Feeds) Config {
	return Config{
		Calls: f.Handler(auth.Interceptor{}), Streams: http.NotFoundHandler(), Feeds: feeds, Lock: auth.Lock{Authenticator: roleTokens{}},
		ExternalURL: func() string { return "https://yard.example.com" },
		Bounds:      edge.NewBounds(edge.Limits{BodyBytes: 1 << 20, Calls: 1000, ClientCalls: 1000, Streams: 1000, ClientStreams: 1000}, 1<<20),
		Now:         func() time.Time { return testNow }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Stopping: make(chan struct{}), KeepAlive: time.Minute, WriteTimeout: time.Minute,
	}
}

// answered is a response to a browser.
type answered struct {
	status int
	header http.Header
	body   string
	doc    *html.Node
}

// do sends a request.
func (v *visitor) do(method, address string, form url.Values, accept string) answered {
	v.t.Helper()
	r := httptest.NewRequest(method, address, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Authorization", "Bearer "+v.token)
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	v.handler.ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		if v.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	a := answered{status: rec.Code, header: rec.Header(), body: rec.Body.String()}
	doc, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, address, err)
	}
	a.doc = doc
	return a
}

// get opens a page and fails the test if the status is not 200.
func (v *visitor) get(address string) answered {
	v.t.Helper()
	a := v.do(http.MethodGet, address, nil, "text/html")
	if a.status != http.StatusOK {
		v.t.Fatalf("GET %s: %d\n%s", address, a.status, textOf(a.doc))
	}
	return a
}

// submit submits the form of an action on a page, as the script does. Pairs are names and values of fields: those that exist
// as hidden fields select the form, the others are added.
func (v *visitor) submit(address, verb string, pairs ...string) answered {
	v.t.Helper()
	form := v.formOf(v.get(address), verb, pairs)
	form.Set("confirmed", "yes")
	return v.do(http.MethodPost, "/ui/actions/"+verb, form, "application/json")
}

// submitPlain submits the form of an action on a page, as a browser without script does. Pairs are those of submit.
func (v *visitor) submitPlain(page answered, verb string, pairs ...string) answered {
	v.t.Helper()
	return v.do(http.MethodPost, "/ui/actions/"+verb, v.formOf(page, verb, pairs), "text/html")
}

// formOf returns the values of the form of an action that pairs select.
func (v *visitor) formOf(page answered, verb string, pairs []string) url.Values {
	v.t.Helper()
forms:
	for _, form := range page.all(`form[action="/ui/actions/` + verb + `"]`) {
		values := url.Values{}
		for _, field := range selected(form, "input") {
			values.Set(attribute(field, "name"), attribute(field, "value"))
		}
		for pair := range slices.Chunk(pairs, 2) {
			if of := selected(form, `input[type="hidden"][name="`+pair[0]+`"]`); len(of) > 0 && attribute(of[0], "value") != pair[1] {
				continue forms
			}
			values.Set(pair[0], pair[1])
		}
		if len(selected(form, "button[disabled]")) > 0 {
			v.t.Fatalf("the button of %s is disabled: %s", verb, textOf(form))
		}
		return values
	}
	v.t.Fatalf("the page has no form for %s %v", verb, pairs)
	return nil
}

// message returns the message that the script would show.
func (a answered) message() string {
	var body struct{ Message string }
	_ = json.Unmarshal([]byte(a.body), &body)
	return body.Message
}

// all returns the elements that a selector matches, as selected does.
func (a answered) all(selector string) []*html.Node { return selected(a.doc, selector) }

// text returns the text of the first element that a selector matches, or "".
func (a answered) text(selector string) string {
	if of := a.all(selector); len(of) > 0 {
		return textOf(of[0])
	}
	return ""
}

// texts returns the texts of all elements that a selector matches.
func (a answered) texts(selector string) []string {
	var texts []string
	for _, n := range a.all(selector) {
		texts = append(texts, textOf(n))
	}
	return texts
}

// link returns the address of the link with a text, or "".
func (a answered) link(text string) string {
	for _, n := range a.all("a") {
		if textOf(n) == text {
			return attribute(n, "href")
		}
	}
	return ""
}

// textOf returns the text of an element with single spaces.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// attribute returns an attribute of an element, or "" if it is missing.
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// selected returns the elements below n that match a simplified CSS selector: tag, #id, .class, [name] and [name="value"],
// combined by spaces for descendants.
func selected(n *html.Node, selector string) []*html.Node {
	first, rest, deeper := cutPart(selector)
	var found []*html.Node
	for d := range n.Descendants() {
		switch {
		case d.Type != html.ElementNode || !isSelected(d, first):
		case deeper:
			found = append(found, selected(d, rest)...)
		default:
			found = append(found, d)
		}
	}
	return found
}

// cutPart splits the first part off a selector.
func cutPart(selector string) (first, rest string, deeper bool) {
	quoted := false
	for i, c := range selector {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ' ' && !quoted:
			return selector[:i], selector[i+1:], true
		}
	}
	return selector, "", false
}

// isSelected reports whether an element matches one part of a selector.
func isSelected(n *html.Node, part string) bool {
	end := func(s string) int {
		if i := strings.IndexAny(s, "#.["); i >= 0 {
			return i
		}
		return len(s)
	}
	tag := part[:end(part)]
	if tag != "" && n.Data != tag {
		return false
	}
	for part = part[len(tag):]; part != ""; {
		if test, rest, ok := strings.Cut(part, "]"); ok && part[0] == '[' {
			name, value, hasValue := strings.Cut(test[1:], "=")
			if !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool {
				return a.Key == name && (!hasValue || a.Val == strings.Trim(value, `"`))
			}) {
				return false
			}
			part = rest
			continue
		}
		word := part[1 : 1+end(part[1:])]
		if part[0] == '#' && attribute(n, "id") != word || part[0] == '.' && !slices.Contains(strings.Fields(attribute(n, "class")), word) {
			return false
		}
		part = part[1+len(word):]
	}
	return true
}

// mustContain fails the test if a text lacks any of the parts.
func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// mustNotContain fails the test if a text contains any of the parts.
func mustNotContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in:\n%s", part, text)
		}
	}
}

// hostile is a text that breaks pages without escaping and layouts without wrapping.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}` + "\x1b[31m" + `javascript:alert(3)`

// mustBeHarmless fails the test if a page has scripts, handlers or images that the templates lack.
func mustBeHarmless(t *testing.T, a answered) {
	t.Helper()
	for _, n := range a.all("script") {
		if !strings.HasPrefix(attribute(n, "src"), assetsPath) {
			t.Errorf("a script: %s", textOf(n))
		}
	}
	for d := range a.doc.Descendants() {
		for _, attr := range d.Attr {
			if strings.HasPrefix(attr.Key, "on") || attr.Key == "style" || attr.Key == "href" && strings.HasPrefix(strings.TrimSpace(attr.Val), "javascript:") {
				t.Errorf("<%s %s=%q>", d.Data, attr.Key, attr.Val)
			}
		}
		if d.Type == html.ElementNode && d.Data == "img" {
			t.Error("an image")
		}
	}
}
