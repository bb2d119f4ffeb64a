package notifications

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// TestAnswersOfReceiversShowNoSecret has receivers repeat what they got, in the forms that they use.
func TestAnswersOfReceiversShowNoSecret(t *testing.T) {
	const path, token = "/services/T0001/B000/hunter2%26", "tk_hunter2&\"q\""
	slack := &v1.NotificationTarget{Config: &v1.NotificationTarget_Slack{Slack: &v1.SlackTarget{Url: "store:url"}}}
	ntfy := &v1.NotificationTarget{Config: &v1.NotificationTarget_Ntfy{Ntfy: &v1.NtfyTarget{Url: "store:url", Token: "store:token"}}}
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"the path": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "Cannot POST ", r.URL.EscapedPath())
		},
		"an unescaped part at the end of what is shown": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "Cannot POST ", strings.Repeat("x", 180), " B000/hunter2&")
		},
		"the query": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, html.EscapeString(r.URL.RequestURI()), http.StatusForbidden)
		},
		"the query's value": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "Cannot POST "+r.URL.Query().Get("sig"), http.StatusForbidden)
		},
		"the URL": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, url.QueryEscape("http://"+r.Host+r.URL.RequestURI()), http.StatusForbidden)
		},
		"the headers": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, fmt.Sprintf("Cannot POST %v %q", r.Header, r.Header), http.StatusForbidden)
		},
		"the headers in HTML": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, html.EscapeString(r.Header.Get("Authorization")), http.StatusForbidden)
		},
		"base64": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, base64.StdEncoding.EncodeToString([]byte("Cannot POST "+r.URL.Path)), http.StatusForbidden)
		},
		"split by escape sequences": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Cannot POST B000/hun\x1b[31mter2\x00&", http.StatusForbidden)
		},
		"the status of an acceptance": func(w http.ResponseWriter, r *http.Request) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(out, "HTTP/1.1 200 OK \x1b]0;x\x07%s %s\r\nContent-Length: 0\r\n\r\n", r.URL.Path, r.Header.Get("Authorization"))
			if err := out.Flush(); err != nil {
				t.Error(err)
			}
		},
		"a malformed answer": func(w http.ResponseWriter, r *http.Request) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(out, "SPDY %s\r\n\r\n", r.URL.Path)
			if err := out.Flush(); err != nil {
				t.Error(err)
			}
		},
	} {
		for _, target := range []*v1.NotificationTarget{slack, ntfy} {
			server := httptest.NewServer(http.HandlerFunc(answer))
			s := newSender(t, target, map[string]string{"url": server.URL + path + "?sig=hunter2%2F3&x=1", "token": token}, "127.0.0.1")
			text, err := s.Send(t.Context(), failedRun, message())
			server.Close()
			if err != nil {
				text += err.Error()
			}
			for _, secret := range []string{"hunter", "T0001", "B000", "/3", base64.StdEncoding.EncodeToString([]byte("hunter2"))[:8], "unter2", "\x1b", "\x07"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s shows %q: %s", name, secret, text)
				}
			}
			if text == "" || !strings.Contains(text, "***") && !strings.Contains(name, "headers") {
				t.Errorf("%s shows %q", name, text)
			}
		}
	}
}

func TestUsefulAnswersAreShown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "invalid_payload\n\x1b[31m in \u202eblock 3\xff", http.StatusBadRequest)
	}))
	defer server.Close()
	target := &v1.NotificationTarget{Config: &v1.NotificationTarget_Slack{Slack: &v1.SlackTarget{Url: "store:url"}}}
	_, err := newSender(t, target, map[string]string{"url": server.URL + "/services/T0/B0/key"}, "127.0.0.1").Send(t.Context(), failedRun, message())
	want := "send to notification target ops: " + strings.TrimPrefix(server.URL, "http://") + " answered 400 Bad Request: invalid_payload in \ufffdblock 3"
	if err == nil || err.Error() != want || !IsPermanent(err) {
		t.Errorf("%v, want %s", err, want)
	}
}
