package cluster

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/dev/testneeds"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// apiServer accepts one token and answers the probes of a node.
type apiServer struct {
	*httptest.Server
	token   atomic.Pointer[string]
	denied  atomic.Bool
	hanging atomic.Bool
	broken  atomic.Bool // connections break
	asked   atomic.Int32
	prefix  string
}

// startServer starts a server.
func startServer(t *testing.T, prefix string) *apiServer {
	t.Helper()
	s := &apiServer{prefix: prefix}
	s.setToken("first")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: s, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}, EnableHTTP2: true}
	s.StartTLS()
	t.Cleanup(s.Server.Close)
	return s
}

func (s *apiServer) setToken(text string) { s.token.Store(&text) }

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	reply := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	refuse := func(code int32, reason metav1.StatusReason, message string) {
		reply(int(code), metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: code, Reason: reason, Message: message})
	}
	_, _ = io.Copy(io.Discard, r.Body)
	if s.broken.Load() {
		panic(http.ErrAbortHandler)
	}
	if s.hanging.Load() {
		<-r.Context().Done()
		return
	}
	switch {
	case r.Header.Get("Authorization") == "":
		refuse(403, metav1.StatusReasonForbidden, `User "system:anonymous" cannot create resource`)
	case r.Header.Get("Authorization") != "Bearer "+*s.token.Load():
		refuse(401, metav1.StatusReasonUnauthorized, "Unauthorized")
	case r.URL.Path == s.prefix+"/version":
		reply(200, version.Info{GitVersion: "v1.35.4", Platform: r.UserAgent()})
	case r.URL.Path == s.prefix+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" && r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/vnd.kubernetes.protobuf":
		reply(201, map[string]any{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": !s.denied.Load()}})
	default:
		refuse(404, metav1.StatusReasonNotFound, r.Method+" "+r.URL.Path)
	}
}

// stop ends the server, so that its address refuses connections.
func (s *apiServer) stop() {
	s.CloseClientConnections()
	s.Close()
}

// kubeconfig returns a kubeconfig of the server for a user with a token.
func (s *apiServer) kubeconfig(token string) string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: c, cluster: {server: "%s%s", certificate-authority-data: %s}}
users:
- {name: u, user: {token: "%s"}}
contexts:
- {name: here, context: {cluster: c, user: u, namespace: jobs}}
`, s.URL, s.prefix, base64.StdEncoding.EncodeToString(authority), token)
}

// open opens the cluster prod with a kubeconfig.
func open(t *testing.T, file string, o Options) (*Clusters, *testneeds.Output) {
	t.Helper()
	log := &testneeds.Output{}
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	c, err := Open([]Config{{Name: "prod", File: file}}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		if t.Failed() {
			t.Log(log)
		}
	})
	return c, log
}

// often probes so often that a test sees the next state soon, and rarely only when Check asks for it.
var (
	often  = Options{Interval: 20 * time.Millisecond, Timeout: time.Minute}
	rarely = Options{Interval: time.Hour, Timeout: time.Minute}
)

func (c *Clusters) reaches(names ...string) func() bool {
	return func() bool { return strings.Join(c.Reachable(), " ") == strings.Join(names, " ") }
}

func TestClusterIsReachableAfterTheFirstProbe(t *testing.T) {
	s := startServer(t, "")
	c, log := open(t, write(t, filepath.Join(t.TempDir(), "config"), s.kubeconfig("first")), rarely)
	c.opened = c.opened.Add(time.Minute) // the first answer of a busy machine may take longer than 3 s
	if !c.reaches("prod")() {
		t.Errorf("the cluster is not reached: %s", log)
	}
	got := c.Get("prod")
	if got == nil || got.Name != "prod" || got.Namespace != "jobs" || got.Config.BearerToken != "first" || c.Get("staging") != nil {
		t.Fatalf("cluster %+v", got)
	}
	info, err := got.Client.Discovery().ServerVersion()
	if err != nil || info.Platform != userAgent {
		t.Errorf("%+v, %v", info, err)
	}
	if log.String() != "" {
		t.Errorf("logged:\n%s", log)
	}
}

func TestClusterOutageAndReturnAreLoggedOnce(t *testing.T) {
	s := startServer(t, "")
	c, log := open(t, write(t, filepath.Join(t.TempDir(), "config"), s.kubeconfig("first")), often)
	testneeds.Await(t, "reached", c.reaches("prod"))
	s.broken.Store(true)
	testneeds.Await(t, "away", c.reaches())
	s.broken.Store(false)
	testneeds.Await(t, "reached again", c.reaches("prod"))
	testneeds.Await(t, "logged", func() bool { return strings.Count(log.String(), "is reached again") == 1 })
	if strings.Count(log.String(), "cluster=prod reason=") != 1 {
		t.Errorf("logged:\n%s", log)
	}
}

func TestClusterThatRefusesConnectionsIsAway(t *testing.T) {
	s := startServer(t, "")
	text := strings.ReplaceAll(s.kubeconfig("first"), s.URL, "https://127.0.0.1:1") // a port that no server uses
	c, log := open(t, write(t, filepath.Join(t.TempDir(), "config"), text), often)
	testneeds.Await(t, "away", func() bool {
		return strings.Count(log.String(), "refused the connection; its API server is not running") == 1
	})
	if !c.reaches()() {
		t.Errorf("reached: %s", log)
	}
}

func TestExpiredCredentialsAreReadAgainFromAChangedKubeconfig(t *testing.T) {
	s := startServer(t, "")
	file := write(t, filepath.Join(t.TempDir(), "config"), s.kubeconfig("first"))
	c, log := open(t, file, often)
	testneeds.Await(t, "reached", c.reaches("prod"))
	client := c.Get("prod").Client
	s.setToken("second")
	testneeds.Await(t, "away", c.reaches())
	testneeds.Await(t, "reason", func() bool {
		return strings.Count(log.String(), "rejects the credentials, which are expired or invalid; renew them in "+file) == 1
	})
	write(t, file, "apiVersion: v1\nkind: Co")
	testneeds.Await(t, "broken", func() bool {
		return strings.Count(log.String(), "changed kubeconfig cannot be read; continuing with the previous one") == 1
	})
	write(t, file, s.kubeconfig("second"))
	testneeds.Await(t, "reached again", c.reaches("prod"))
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Errorf("the client of before: %v", err)
	}
	if got := c.Get("prod"); got.Config.BearerToken != "second" || got.Client != client {
		t.Errorf("token %s", got.Config.BearerToken)
	}
}

func TestClientFollowsAClusterThatMoves(t *testing.T) {
	from, to := startServer(t, "/k8s/one"), startServer(t, "/two")
	file := write(t, filepath.Join(t.TempDir(), "config"), from.kubeconfig("first"))
	c, _ := open(t, file, rarely)
	testneeds.Await(t, "reached", c.reaches("prod"))
	from.stop()
	c.Check("prod")
	testneeds.Await(t, "away", c.reaches())
	write(t, file, to.kubeconfig("first"))
	c.Check("prod")
	testneeds.Await(t, "reached again", c.reaches("prod"))
	if _, err := c.Get("prod").Client.Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
}

func TestWrappedTransportSeesRequestsAfterAClusterMoves(t *testing.T) {
	from, to := startServer(t, ""), startServer(t, "")
	file := write(t, filepath.Join(t.TempDir(), "config"), from.kubeconfig("first"))
	var seen atomic.Int32
	c, _ := open(t, file, Options{Interval: time.Hour, Timeout: time.Minute, WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { seen.Add(1); return next.RoundTrip(r) })
	}})
	testneeds.Await(t, "reached", c.reaches("prod"))
	if got, want := seen.Load(), from.asked.Load(); got == 0 || got != want {
		t.Errorf("the wrapper has seen %d requests of %d", got, want)
	}
	write(t, file, to.kubeconfig("first"))
	c.Check("prod")
	testneeds.Await(t, "the wrapper has seen a request to the new server", func() bool { return to.asked.Load() > 0 && seen.Load() == from.asked.Load()+to.asked.Load() })
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestClusterWithoutAnAnswerIsAway(t *testing.T) {
	s := startServer(t, "")
	s.hanging.Store(true)
	c, log := open(t, write(t, filepath.Join(t.TempDir(), "config"), s.kubeconfig("first")), Options{Interval: 20 * time.Millisecond, Timeout: 100 * time.Millisecond})
	testneeds.Await(t, "away", func() bool { return strings.Count(log.String(), "no answer within 100ms") == 1 })
	s.hanging.Store(false)
	testneeds.Await(t, "reached", c.reaches("prod"))
}

func TestClusterWithoutCredentialsIsAway(t *testing.T) {
	s := startServer(t, "")
	c, log := open(t, write(t, filepath.Join(t.TempDir(), "config"), s.kubeconfig("")), often)
	testneeds.Await(t, "away", func() bool { return strings.Count(log.String(), "no credentials for https://") == 1 })
	if !c.reaches()() {
		t.Errorf("reached: %s", log)
	}
}

func TestClusterWithoutPermissionToCreateJobsIsReachableWithAWarning(t *testing.T) {
	s := startServer(t, "")
	s.denied.Store(true)
	c, log := open(t, write(t, filepath.Join(t.TempDir(), "config"), s.kubeconfig("first")), often)
	testneeds.Await(t, "reached", c.reaches("prod"))
	testneeds.Await(t, "asked", func() bool { return s.asked.Load() > 3 })
	if strings.Count(log.String(), "this node may not create Jobs in the namespace of its context") != 1 {
		t.Errorf("logged:\n%s", log)
	}
}

func TestClusterWithUntrustedCertificateIsAway(t *testing.T) {
	s := startServer(t, "")
	text := s.kubeconfig("first")
	at := strings.Index(text, ", certificate-authority-data")
	text = text[:at] + text[at+strings.Index(text[at:], "}}"):]
	_, log := open(t, write(t, filepath.Join(t.TempDir(), "config"), text), often)
	testneeds.Await(t, "away", func() bool {
		return strings.Count(log.String(), "is signed by an unknown authority; check certificate-authority-data") == 1
	})
}

func TestClusterWithMismatchedCertificateIsAway(t *testing.T) {
	s := startServer(t, "")
	text := strings.Replace(s.kubeconfig("first"), "127.0.0.1", "localhost", 1)
	_, log := open(t, write(t, filepath.Join(t.TempDir(), "config"), text), often)
	testneeds.Await(t, "away", func() bool { return strings.Count(log.String(), "is not valid: x509: certificate is valid for") == 1 })
}

func TestReachableWaitsForTheFirstAnswerOnly(t *testing.T) {
	s := startServer(t, "")
	c, _ := open(t, write(t, filepath.Join(t.TempDir(), "config"), s.kubeconfig("first")), rarely)
	testneeds.Await(t, "reached", c.reaches("prod"))
	s.setToken("second")
	if !c.reaches("prod")() {
		t.Error("the newest result does not count")
	}
	before := s.asked.Load()
	c.Check("prod")
	testneeds.Await(t, "asked again", func() bool { return s.asked.Load() > before })
	testneeds.Await(t, "away", c.reaches())
}

func TestWatchEndsWhileAClusterHangs(t *testing.T) {
	s := startServer(t, "")
	s.hanging.Store(true)
	c, log := open(t, write(t, filepath.Join(t.TempDir(), "config"), s.kubeconfig("first")), Options{Timeout: time.Hour})
	testneeds.Await(t, "asked", func() bool { return s.asked.Load() > 0 })
	done := make(chan error, 1)
	go func() { done <- c.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Close does not return")
	}
	if log.String() != "" {
		t.Errorf("logged:\n%s", log)
	}
}
