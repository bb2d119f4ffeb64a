package login

import (
	"encoding/base64"
	"net/http"
)

// SetNotice stores a text for the next page of the browser to show once.
func SetNotice(w http.ResponseWriter, r *http.Request, text string) {
	text = text[:min(len(text), maxNotice)]
	setCookie(w, r, noticeCookie, base64.RawURLEncoding.EncodeToString([]byte(text)), 60)
}

// HasNotice reports whether the requested page has a notice to show, as after an action.
func HasNotice(r *http.Request) bool { return cookie(r, noticeCookie) != "" }

// TakeNotice returns and clears the notice of the browser, or returns "" if there is none.
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
