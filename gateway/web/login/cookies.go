package login

import (
	"crypto/rand"
	"net"
	"net/http"
	"strings"
)

// MaxToken is the longest token that a cookie holds, in bytes: browsers drop cookies of more than 4 KiB with their name.
const MaxToken = 3900

const (
	tokenCookie = "token"
	formCookie  = "form"
	// noticeCookie has a text that the next page shows once.
	noticeCookie = "notice"
	// maxNotice bounds that text, in bytes.
	maxNotice = 1 << 10
)

// isSecure reports whether the browser reaches the gateway by https, by itself or through a proxy that says so.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// cookieName returns the name of a cookie of the gateway that a request reaches.
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

// Token returns the token that the browser of a request is logged in with, or "".
func Token(r *http.Request) string { return cookie(r, tokenCookie) }

// Begin logs the browser in with a token until it is closed, and makes forms of before worthless.
func Begin(w http.ResponseWriter, r *http.Request, token string) {
	setCookie(w, r, tokenCookie, token, 0)
	setCookie(w, r, formCookie, rand.Text(), 0)
}

// End logs the browser out.
func End(w http.ResponseWriter, r *http.Request) {
	setCookie(w, r, tokenCookie, "", -1)
	setCookie(w, r, formCookie, "", -1)
}
