package login

import (
	"crypto/rand"
	"net"
	"net/http"
	"strings"
)

// MaxToken is the maximum length of a token in a cookie, in bytes. Browsers drop cookies whose name and value exceed 4 KiB.
const MaxToken = 3900

const (
	tokenCookie = "token"
	formCookie  = "form"
	// noticeCookie holds a text that the next page shows once.
	noticeCookie = "notice"
	// maxNotice bounds the length of a notice, in bytes.
	maxNotice = 1 << 10
)

// isSecure reports whether the browser reaches the gateway by HTTPS, directly or through a proxy that says so.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// cookieName returns the name of a cookie for the host and port of a request.
func cookieName(r *http.Request, what string) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "default"
	}
	name := "switchyard-" + what + "-" + port
	if isSecure(r) {
		name = "__Host-" + name
	}
	return name
}

func setCookie(w http.ResponseWriter, r *http.Request, what, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r, what), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: isSecure(r), SameSite: http.SameSiteStrictMode,
	})
}

func cookie(r *http.Request, what string) string {
	c, err := r.Cookie(cookieName(r, what))
	if err != nil {
		return ""
	}
	return c.Value
}

// Token returns the token of the logged-in browser, or "".
func Token(r *http.Request) string { return cookie(r, tokenCookie) }

// Begin logs the browser in for its session, and invalidates forms from before the login.
func Begin(w http.ResponseWriter, r *http.Request, token string) {
	setCookie(w, r, tokenCookie, token, 0)
	setCookie(w, r, formCookie, rand.Text(), 0)
}

// End logs the browser out.
func End(w http.ResponseWriter, r *http.Request) {
	setCookie(w, r, tokenCookie, "", -1)
	setCookie(w, r, formCookie, "", -1)
}
