package gatewayclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gateway is a server whose answers are its name and the body of the request.
type gateway struct {
	*httptest.Server
	identity atomic.Value // string
	calls    atomic.Int32
	cut      atomic.Bool // cuts each connection after it has received a request
}

func newGateway(t *testing.T, name string, secure bool) *gateway {
	t.Helper()
	g := &gateway{}
	g.identity.Store("A")
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/identity" {
			_, _ = io.WriteString(w, g.identity.Load().(string))
			return
		}
		g.calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		if g.cut.Load() {
			g.CloseClientConnections()
			return
		}
		_, _ = fmt.Fprintf(w, "%s%s %s %s", name, r.URL.Path, r.Header.Get("Authorization"), body)
	}))
	g.Config.Protocols = new(http.Protocols)
	g.Config.Protocols.SetHTTP1(true)
	if secure {
		g.EnableHTTP2 = true
		g.Config.Protocols.SetHTTP2(true)
		g.StartTLS()
	} else {
		g.Config.Protocols.SetUnencryptedHTTP2(true)
		g.Start()
	}
	t.Cleanup(g.Close)
	return g
}

func identify(ctx context.Context, client *http.Client, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/identity", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func open(t *testing.T, o Options, urls ...string) *Conn {
	t.Helper()
	list, err := Parse(strings.Join(urls, ","))
	if err != nil {
		t.Fatal(err)
	}
	o.Token = func() string { return "t0" }
	c := New(list, o)
	t.Cleanup(c.Close)
	return c
}

// post sends a request with a body.
func post(ctx context.Context, c *Conn, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/x", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	response, err := c.HTTP.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// safe returns the context of a call without side effects.
func safe(t *testing.T) context.Context { return context.WithValue(t.Context(), repeatable{}, true) }

// deaf returns the URL of a server that accepts connections and never answers.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

const refusing = "http://127.0.0.1:1"

func TestRequestsMoveToGatewayThatAnswers(t *testing.T) {
	t.Parallel()
	a, b := newGateway(t, "a", false), newGateway(t, "b", false)
	c := open(t, Options{}, refusing, a.URL, b.URL)
	for range 2 {
		if got, err := post(t.Context(), c, "hello"); err != nil || got != "a/x Bearer t0 hello" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if url, _ := c.InUse(); url != a.URL {
		t.Errorf("%s is in use", url)
	}
	_, changed := c.InUse()
	a.Close()
	var requests sync.WaitGroup
	for range 10 {
		requests.Go(func() {
			if got, err := post(safe(t), c, "again"); err != nil || got != "b/x Bearer t0 again" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	requests.Wait()
	if !isClosed(changed) {
		t.Error("nothing says that b is in use")
	}
	b.Close()
	_, err := post(safe(t), c, "")
	none, ok := errors.AsType[*UnreachableError](err)
	if !ok || len(none.Reasons) != 3 || !strings.Contains(err.Error(), "none of 3 gateways can be used: "+b.URL) || !strings.Contains(err.Error(), refusing+": dial tcp") {
		t.Errorf("without a gateway: %v", err)
	}
}

// TestRequestIsSentTwiceOnlyIfItMayBe cuts the connection on which a request has arrived.
func TestRequestIsSentTwiceOnlyIfItMayBe(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		a, b := newGateway(t, "a", secure), newGateway(t, "b", secure)
		o := Options{}
		if secure {
			roots := x509.NewCertPool()
			roots.AddCert(a.Certificate())
			roots.AddCert(b.Certificate())
			o.TLS = &tls.Config{RootCAs: roots}
		}
		c := open(t, o, a.URL, b.URL)
		a.cut.Store(true)
		_, err := post(t.Context(), c, "once")
		if lost, ok := errors.AsType[*UnreachableError](err); !ok || len(lost.Reasons) != 1 || lost.Reasons[0].Gateway != a.URL || a.calls.Load()+b.calls.Load() != 1 {
			t.Errorf("secure %v: a received %d, b %d, %v", secure, a.calls.Load(), b.calls.Load(), err)
		}
		if got, err := post(t.Context(), c, "next"); err != nil || !strings.HasPrefix(got, "b/x") {
			t.Errorf("secure %v: the next request: %q, %v", secure, got, err)
		}
		b.cut.Store(true)
		a.cut.Store(false)
		if got, err := post(safe(t), c, "safe"); err != nil || !strings.HasSuffix(got, " safe") || !strings.HasPrefix(got, "a/x") {
			t.Errorf("secure %v: a call without side effects: %q, %v", secure, got, err)
		}
	}
}

func TestOnlyGatewaysOfOneStoreAreUsed(t *testing.T) {
	t.Parallel()
	a, other, b := newGateway(t, "a", false), newGateway(t, "other", false), newGateway(t, "b", false)
	other.identity.Store("B")
	c := open(t, Options{Identify: identify}, a.URL, other.URL, b.URL)
	if id, err := c.Identify(t.Context()); id != "A" || err != nil {
		t.Fatal(id, err)
	}
	a.Close()
	if got, err := post(safe(t), c, "hello"); err != nil || !strings.HasPrefix(got, "b/x") || other.calls.Load() != 0 {
		t.Errorf("%q, %v; the gateway of another store received %d requests", got, err, other.calls.Load())
	}
	b.identity.Store("C") // as after a restart with another store
	if id, err := c.Identify(t.Context()); err == nil || !strings.Contains(err.Error(), "it has the store B, but "+a.URL+" has the store A") ||
		!strings.Contains(err.Error(), "it has the store C") || !strings.Contains(err.Error(), a.URL+": its store cannot be identified") {
		t.Errorf("%s, %v", id, err)
	}
	if err := c.Each(t.Context(), func(_ context.Context, gateway string) (bool, error) { return true, errors.New("tried " + gateway) }); err == nil || strings.Contains(err.Error(), "tried") {
		t.Error(err)
	}
	c.Expect("B", "the fleet")
	if id, err := c.Identify(t.Context()); id != "B" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if url, _ := c.InUse(); url != other.URL {
		t.Errorf("%s is in use", url)
	}
}

// TestIdentifyLeavesGatewayThatDoesNotAnswer covers a gateway that accepts connections but hangs.
func TestIdentifyLeavesGatewayThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	a := newGateway(t, "a", false)
	c := open(t, Options{Identify: identify}, deaf(t), deaf(t), a.URL)
	start := time.Now()
	if id, err := c.Identify(t.Context()); id != "A" || err != nil {
		t.Fatal(id, err)
	}
	if url, _ := c.InUse(); url != a.URL || time.Since(start) > 3*silentTimeout {
		t.Errorf("%s is in use after %s", url, time.Since(start))
	}
}

func TestEachReturnsAnswers(t *testing.T) {
	t.Parallel()
	c := open(t, Options{}, "http://a", "http://b", "http://c")
	var tried []string
	err := c.Each(t.Context(), func(_ context.Context, gateway string) (bool, error) {
		tried = append(tried, gateway)
		return gateway == "http://b", errors.New("refused by " + gateway)
	})
	if err == nil || err.Error() != "refused by http://b" || len(tried) != 2 {
		t.Errorf("%v, tried %v", err, tried)
	}
}

// TestRedirectCarriesNoToken covers a gateway that redirects to another host.
func TestRedirectCarriesNoToken(t *testing.T) {
	t.Parallel()
	elsewhere := newGateway(t, "elsewhere", false)
	r := httptest.NewUnstartedServer(http.RedirectHandler(elsewhere.URL+"/y", http.StatusTemporaryRedirect))
	r.Config.Protocols = new(http.Protocols)
	r.Config.Protocols.SetUnencryptedHTTP2(true)
	r.Start()
	defer r.Close()
	c := open(t, Options{}, r.URL)
	if got, err := post(t.Context(), c, "hello"); err != nil || got != "elsewhere/y  hello" {
		t.Errorf("%q, %v", got, err)
	}
}
