package login

import (
	"encoding/base64"
	"net/http"
)

// SetNotice has the next page of the browser show a text once.
func SetNotice(w http.ResponseWriter, r *http.Request, text string) {
	text = text[:min(len(text), maxNotice)]
	setCookie(w, r, noticeCookie, base64.RawURLEncoding.EncodeToString([]byte(text)), 60)
}

// HasNotice reports whether the page that is asked for follows an action and shows what it has done.
func HasNotice(r *http.Request) bool { return cookie(r, noticeCookie) != "" }

// TakeNotice returns the text that a page is to show once, or "".
func TakeNotice(w http.ResponseWriter, r *http.Request) string {
	value := cookie(r, noticeCookie)
	if value == "" {
		return ""
	}
	setCookie(w, r, noticeCookie, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return ""
	}
	return string(text)
}
