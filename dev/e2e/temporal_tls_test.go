package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/dev/processes"
)

// certificates holds files with the certificates of an authority, a server and a client.
type certificates struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCertificates(t *testing.T) *certificates {
	t.Helper()
	c := &certificates{dir: t.TempDir()}
	c.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &c.key.PublicKey, c.key)
	if err != nil {
		t.Fatal(err)
	}
	if c.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	c.write(t, "authority.pem", "CERTIFICATE", der)
	for serial, name := range []string{"server", "client"} {
		key := newKey(t)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(serial) + 2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, c.cert, &key.PublicKey, c.key)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		c.write(t, name+".pem", "CERTIFICATE", der)
		c.write(t, name+".key", "PRIVATE KEY", private)
	}
	return c
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (c *certificates) file(name string) string { return filepath.Join(c.dir, name) }

func (c *certificates) write(t *testing.T, name, kind string, data []byte) {
	t.Helper()
	if err := os.WriteFile(c.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// terminate serves TLS in front of an address for clients with a certificate, and returns its own address.
func (c *certificates) terminate(t *testing.T, behind string) (address string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.file("server.pem"), c.file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	plain := &http.Transport{Protocols: new(http.Protocols)}
	plain.Protocols.SetUnencryptedHTTP2(true)
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: behind}) },
		Transport: plain, FlushInterval: -1,
	})
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a client of another authority is refused
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		plain.CloseIdleConnections()
	})
	return server.Listener.Addr().String()
}

// TestTemporalBehindMutualTLS lets a gateway and a worker reach Temporal with a client certificate from Temporal's own
// settings. The stack is its own, because the shared one would give tasks of other tests to the worker.
func TestTemporalBehindMutualTLS(t *testing.T) {
	t.Parallel()
	c, stack := newCertificates(t), startDev(t, "--nodes", "0")
	env := func(authority string) []string {
		return []string{
			"TEMPORAL_ADDRESS=" + c.terminate(t, stack.Temporal), "TEMPORAL_TLS=true", "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + authority,
			"TEMPORAL_TLS_CLIENT_CERT_PATH=" + c.file("client.pem"), "TEMPORAL_TLS_CLIENT_KEY_PATH=" + c.file("client.key"),
		}
	}
	other := newCertificates(t)
	refused := startWith(t, env(other.file("authority.pem")), "gateway", "--address", "127.0.0.1:0", "--store", stack.Store)
	if code := refused.Wait(); code != 3 || !strings.Contains(refused.Stderr.String(), "certificate") {
		t.Errorf("with another authority it exits with %d: %s", code, processes.Tail(refused.Stderr.String()))
	}
	gateway := startWith(t, env(c.file("authority.pem")), "gateway", "--address", "127.0.0.1:0", "--store", stack.Store)
	url := gateway.Field("Gateway")
	worker := startWith(t, append(env(c.file("authority.pem")), "SWITCHYARD_GATEWAY="+url), "worker", "--name", "encrypted", "--spool-dir", t.TempDir(), "--metrics-address", "none")
	worker.Line(worker.Stdout, "Node")
	do(t, url, 0, "run", write(t, "name: encrypted\ntasks: { build: { type: shell, constraints: { targetNode: encrypted }, spec: { command: echo built } } }\n"))
}
