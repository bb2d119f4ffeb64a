package httpguard

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// send sends a request over loopback, with headers in pairs of name and value, and returns the
// status and the body.
func send(t *testing.T, server *httptest.Server, method, host string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/path", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

var answers = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") })

func TestGuardCountsTheHostForEveryMethod(t *testing.T) {
	server := httptest.NewServer(Guard{Hosts: []string{"Yard.example"}}.Protect(answers))
	defer server.Close()
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	address := server.Listener.Addr().String()
	for host, want := range map[string]int{
		address: 200, "localhost:7280": 200, "LOCALHOST": 200, "localhost.": 200, "ui.localhost:1": 200, "127.0.0.1": 200,
		"[::1]:7280": 200, "[::1]": 200, "192.168.1.7:7280": 200, own: 200, strings.ToUpper(own) + ":7280": 200,
		"yard.example:443": 200, "yard.example": 200,
		"evil.example": 403, "evil.example:7280": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
		"yard.example.evil.example": 403, "notlocalhost": 403, "evil.example.:80": 403,
	} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"} {
			status, body := send(t, server, method, host)
			if status != want {
				t.Errorf("%s as %s: %d, want %d", method, host, status, want)
			}
			if want == 403 && method == "GET" && !strings.Contains(body, "--allowed-host") {
				t.Errorf("%s as %s: %q names no remedy", method, host, body)
			}
		}
	}
}

func TestGuardRefusesPagesOfOtherSites(t *testing.T) {
	server := httptest.NewServer(Guard{}.Protect(answers))
	defer server.Close()
	host := server.Listener.Addr().String()
	for _, test := range []struct {
		name, origin, site string
		want               int
	}{
		{"a program", "", "", 200},
		{"its own page", "http://" + host, "same-origin", 200},
		{"an address that was typed", "", "none", 200},
		{"another page", "https://evil.example", "cross-site", 403},
		{"another page in an old browser", "https://evil.example", "", 403},
		{"a page on another port", "http://127.0.0.1:1", "same-site", 403},
	} {
		var headers []string
		if test.origin != "" {
			headers = append(headers, "Origin", test.origin)
		}
		if test.site != "" {
			headers = append(headers, "Sec-Fetch-Site", test.site)
		}
		if status, _ := send(t, server, "POST", host, headers...); status != test.want {
			t.Errorf("%s: %d, want %d", test.name, status, test.want)
		}
	}
}

func TestGuardTakesAnyNameFromOtherMachines(t *testing.T) {
	for everywhere, want := range map[bool]int{false: 200, true: 403} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "http://yard.example/", nil) // a request that has not arrived over loopback
		Guard{Everywhere: everywhere}.Protect(answers).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("everywhere %t: %d, want %d", everywhere, w.Code, want)
		}
	}
}

func TestGuardTakesARequestWithoutAName(t *testing.T) {
	server := httptest.NewServer(Guard{}.Protect(answers))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "200 OK") {
		t.Errorf("%q, %v", answer, err)
	}
}
