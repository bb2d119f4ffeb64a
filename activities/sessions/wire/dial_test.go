package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// echo serves sessions whose streams send back what they receive.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := Accept(w, r)
	if err != nil {
		return
	}
	s := NewSession(conn, false)
	defer func() { _ = s.Close() }()
	for {
		c, err := s.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}()
	}
}

func TestDialOverHTTPAndHTTPS(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(echo))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for _, o := range []DialOptions{
		{URL: plain.URL + "/", Path: "/v1/sessions"},
		{URL: secure.URL, Path: "/v1/sessions", TLS: &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := Dial(ctx, o)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		s := NewSession(conn, true)
		c, err := s.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "hello")
		_ = c.CloseWrite()
		if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		_ = s.Close()
	}
}

func TestDialShowsRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		status int
		says   string
	}{
		"json": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer t0" || r.Header.Get("X-A") != "b" {
				t.Error(r.Header)
			}
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"code":"unauthenticated","message":"this gateway asks for a token"}`)
		}, 401, "this gateway asks for a token"},
		"proxy":      {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }, 503, "503 Service Unavailable: busy"},
		"old":        {http.NotFound, 404, "an older gateway"},
		"no upgrade": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, 200, "drops the Upgrade header"},
		"http 2": {func(w http.ResponseWriter, r *http.Request) {
			_, err := Accept(struct{ http.ResponseWriter }{httptest.NewRecorder()}, r)
			http.Error(w, err.Error(), http.StatusHTTPVersionNotSupported)
		}, 505, "sessions are opened by HTTP/1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.serve)
			defer server.Close()
			_, err := Dial(t.Context(), DialOptions{URL: server.URL, Path: "/v1/links", Token: func() string { return "t0" }, Header: http.Header{"X-A": {"b"}}})
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || refused.Status != c.status || !strings.Contains(refused.Message, c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusUpgradeRequired {
		t.Error(resp.Status)
	}
}

func TestRequestIsAnswered(t *testing.T) {
	a, b := sessionPair(t)
	go func() {
		for {
			c, err := b.Accept()
			if err != nil {
				return
			}
			h, err := ReadHeader(c)
			switch {
			case err != nil, h.GetTask() == "silent":
			case h.GetTask() == "gone":
				Refuse(c, "not_found", "no task gone")
			default:
				_ = WriteMessage(c, &v1.SessionReply{Task: h.GetTask()})
				_, _ = io.WriteString(c, "behind it")
				_ = c.CloseWrite()
			}
		}
	}()
	request := func(ctx context.Context, task string) (Conn, *v1.SessionReply, error) {
		c, err := a.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reply, err := Request(ctx, c, &v1.SessionHeader{Task: task})
		return c, reply, err
	}
	c, reply, err := request(t.Context(), "build")
	if err != nil || reply.GetTask() != "build" {
		t.Fatalf("%v, %v", reply, err)
	}
	if got, err := io.ReadAll(c); string(got) != "behind it" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_, _, err = request(t.Context(), "gone")
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Code != "not_found" || refused.Message != "no task gone" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := request(ctx, "silent"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
