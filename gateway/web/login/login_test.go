package login

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// browser is a cookie jar.
type browser map[string]*http.Cookie

// visit calls a handler with the browser's cookies and stores the cookies it sets.
func (b browser) visit(method string, form url.Values, handler http.HandlerFunc) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://yard:7280/", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range b {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	handler(w, r)
	for _, c := range w.Result().Cookies() {
		if b[c.Name] = c; c.MaxAge < 0 {
			delete(b, c.Name)
		}
	}
	return w
}

// proof returns a proof as a form of the browser would carry it.
func (b browser) proof() string {
	var proof string
	b.visit(http.MethodGet, nil, func(w http.ResponseWriter, r *http.Request) { proof = Proof(FormSecret(w, r)) })
	return proof
}

func (b browser) hasProof(proof string) bool {
	var ok bool
	b.visit(http.MethodPost, url.Values{FormField: {proof}}, func(_ http.ResponseWriter, r *http.Request) { ok = HasProof(r) })
	return ok
}

func TestFormNeedsProofOfItsBrowser(t *testing.T) {
	ann, bob := browser{}, browser{}
	first, second := ann.proof(), ann.proof()
	if first == second {
		t.Error("two proofs are alike")
	}
	if !ann.hasProof(first) || !ann.hasProof(second) {
		t.Error("a browser's own proof does not count")
	}
	bob.proof()
	for what, proof := range map[string]string{"another browser's": first, "none": "", "garbage": "A", "a short one": first[:40]} {
		if bob.hasProof(proof) {
			t.Errorf("%s proof counts", what)
		}
	}
	if (browser{}).hasProof(first) {
		t.Error("a browser without cookies has a proof")
	}
}

func TestLogInRenewsForms(t *testing.T) {
	b := browser{}
	before := b.proof()
	b.visit(http.MethodPost, nil, func(w http.ResponseWriter, r *http.Request) { Begin(w, r, "sy_token") })
	if b.hasProof(before) {
		t.Error("a form of before the log-in still counts")
	}
	var token string
	read := func(_ http.ResponseWriter, r *http.Request) { token = Token(r) }
	if b.visit(http.MethodGet, nil, read); token != "sy_token" {
		t.Errorf("token %q", token)
	}
	b.visit(http.MethodPost, nil, End)
	if b.visit(http.MethodGet, nil, read); token != "" || len(b) != 0 {
		t.Errorf("after the log-out: token %q, %d cookies", token, len(b))
	}
}

func TestCookiesAreClosedToScriptsAndSites(t *testing.T) {
	for _, proxy := range []string{"", "https"} {
		r := httptest.NewRequest(http.MethodPost, "http://yard:7280/", nil)
		r.Header.Set("X-Forwarded-Proto", proxy)
		w := httptest.NewRecorder()
		Begin(w, r, "sy_token")
		for _, c := range w.Result().Cookies() {
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure != (proxy == "https") || strings.HasPrefix(c.Name, "__Host-") != c.Secure || !strings.Contains(c.Name, "7280") {
				t.Errorf("cookie %s", c)
			}
		}
	}
}

func TestNoticeIsShownOnce(t *testing.T) {
	b := browser{}
	const text = "Run a; b=\"c\" is being cancelled — ✓"
	b.visit(http.MethodPost, nil, func(w http.ResponseWriter, r *http.Request) { SetNotice(w, r, text) })
	for _, want := range []string{text, ""} {
		b.visit(http.MethodGet, nil, func(w http.ResponseWriter, r *http.Request) {
			if got := TakeNotice(w, r); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
