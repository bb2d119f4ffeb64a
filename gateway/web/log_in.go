package web

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"connectrpc.com/authn"
	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/web/login"
)

// maxForm bounds the body of a form, in bytes.
const maxForm = 1 << 20

// webActor is the actor name of the page if authentication is off.
const webActor = "web"

// loginPage is the data of the login page.
type loginPage struct {
	Next   string
	Failed string // why the last attempt failed
	Locked bool
}

// withToken passes the token of the browser's cookie to next as a bearer token.
func withToken(next http.Handler, actorHeader string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		if token := login.Token(r); token != "" && r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if actorHeader != "" && r.Header.Get(actorHeader) == "" {
			r.Header.Set(actorHeader, webActor)
		}
		next.ServeHTTP(rw, r)
	})
}

// serveLogin shows the login form.
func (w *Web) serveLogin(rw http.ResponseWriter, r *http.Request) {
	w.writeLogin(rw, r, http.StatusOK, "")
}

func (w *Web) writeLogin(rw http.ResponseWriter, r *http.Request, status int, failed string) {
	page := &Page{Data: loginPage{localPath(r.FormValue("next")), failed, w.isLocked()}, templates: w.pages.templates, FormMark: w.formMark}
	html, err := page.execute("login", page)
	if err != nil {
		w.Log.Error("cannot render the login page", "error", err)
	}
	w.writePage(rw, r, status, frame{Title: "Log in", Content: string(html)})
}

// logIn checks the submitted token and stores it in a cookie.
func (w *Web) logIn(rw http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(rw, r.Body, maxForm)
	token := strings.TrimSpace(r.PostFormValue("token"))
	var err error
	switch {
	case !w.isLocked():
		http.Redirect(rw, r, "/", http.StatusSeeOther)
		return
	case !login.HasProof(r):
		err = errOldForm()
	case token == "":
		err = authn.Errorf("the token is empty")
	case len(token) > login.MaxToken:
		err = authn.Errorf("the token has %d bytes, but a cookie holds at most %d; create a shorter one with `switchyard tokens create`", len(token), login.MaxToken)
	default:
		_, err = w.Lock.Authenticator.Authenticate(r.Context(), token)
	}
	if err != nil {
		if w.Lock.OnRefused != nil {
			w.Lock.OnRefused(r, err)
		}
		w.writeLogin(rw, r, rpcerror.HTTPStatus(connect.CodeOf(err)), messageOf(err))
		return
	}
	login.Begin(rw, r, token)
	http.Redirect(rw, r, localPath(r.PostFormValue("next")), http.StatusSeeOther)
}

// logOut deletes the token cookie.
func (w *Web) logOut(rw http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(rw, r.Body, maxForm)
	if !login.HasProof(r) {
		w.writeError(rw, r, errOldForm())
		return
	}
	login.End(rw, r)
	http.Redirect(rw, r, "/ui/login", http.StatusSeeOther)
}

// errOldForm returns the error for a form without a valid proof that this gateway made it for this browser.
func errOldForm() error {
	return rpcerror.Invalid("this form does not come from a page that the gateway sent to this browser, or the browser has logged in or out since; reload the page (cookies must be enabled)")
}

// localPath returns the address that a form names if it is a page of this gateway, or "/" otherwise.
func localPath(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" || u.Path != path.Clean(u.Path) || !strings.HasPrefix(u.Path, "/ui/") || u.Path == "/ui/login" || strings.ContainsAny(address, "\\\r\n\t") {
		return "/"
	}
	return address
}
