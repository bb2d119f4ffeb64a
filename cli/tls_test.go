package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/cli/exit"
	"switchyard/cli/tlsfiles"
	"switchyard/gateway/auth"
	"switchyard/gateway/tokens"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// authority is a certificate authority with its own certificate in a file.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), name+".pem")}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

// issue writes a certificate and its key for a name. The certificate is also valid for this machine.
func (a *authority) issue(t *testing.T, dir, name string, serial int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	must(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	writePEM(t, cert, "CERTIFICATE", der)
	writePEM(t, key, "PRIVATE KEY", text)
	return cert, key
}

func writePEM(t *testing.T, path, kind string, data []byte) {
	t.Helper()
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
}

// serveTLS serves the WhoAmI part of a gateway over TLS and returns its address.
func serveTLS(t *testing.T, files tlsfiles.Server) (address string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(switchyardv1connect.NewAuthServiceHandler(tokens.Service{}))
	cfg, err := files.Config()
	must(t, err)
	server := &http.Server{
		Handler: auth.Lock{ActorHeader: "Switchyard-Actor"}.Middleware(mux), TLSConfig: cfg, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if cfg == nil {
			_ = server.Serve(listener)
		} else {
			_ = server.ServeTLS(listener, "", "")
		}
	}()
	t.Cleanup(func() {
		must(t, server.Close())
		<-served
	})
	return listener.Addr().String()
}

func TestClientsReachAGatewayByTLS(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	cert, key := ours.issue(t, dir, "gateway", 2)
	clientCert, clientKey := ours.issue(t, dir, "ann", 3)
	strangerCert, strangerKey := theirs.issue(t, dir, "eve", 4)
	open := serveTLS(t, tlsfiles.Server{Cert: cert, Key: key})
	closed := serveTLS(t, tlsfiles.Server{Cert: cert, Key: key, ClientCA: ours.file})
	plain := serveTLS(t, tlsfiles.Server{})
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"the right authority":         {[]string{"--gateway", "https://" + open, "--ca", ours.file}, exit.CodeDone, "role admin"},
		"no authority":                {[]string{"--gateway", "https://" + open}, exit.CodeSystem, "--ca FILE"},
		"another authority":           {[]string{"--gateway", "https://" + open, "--ca", theirs.file}, exit.CodeSystem, "--ca FILE"},
		"a certificate of the client": {[]string{"--gateway", "https://" + closed, "--ca", ours.file, "--client-cert", clientCert, "--client-key", clientKey}, exit.CodeDone, "role admin"},
		"none of the client":          {[]string{"--gateway", "https://" + closed, "--ca", ours.file}, exit.CodeSystem, "--client-cert"},
		"a stranger's":                {[]string{"--gateway", "https://" + closed, "--ca", ours.file, "--client-cert", strangerCert, "--client-key", strangerKey}, exit.CodeSystem, "rejects the certificate"},
		"http where https is served":  {[]string{"--gateway", "http://" + open}, exit.CodeSystem, "https://"},
		"https where http is served":  {[]string{"--gateway", "https://" + plain, "--ca", ours.file}, exit.CodeSystem, "it serves http"},
		"half a pair":                 {[]string{"--gateway", "https://" + closed, "--client-cert", clientCert}, exit.CodeUsage, "--client-key is missing"},
		"no certificate":              {[]string{"--gateway", "https://" + open, "--ca", key}, exit.CodeUsage, "contains no certificate"},
	} {
		var got result
		isRight := func() bool {
			got = run(t, append([]string{"whoami"}, test.args...)...)
			return got.code == test.code && strings.Contains(got.stdout+got.stderr, test.says)
		}
		for tries := 1; !isRight(); tries++ { // a remedy may need a probe, which does not wait long for a busy machine
			if tries == 5 {
				t.Errorf("%s: %+v", name, got)
				break
			}
		}
	}
	// A replaced certificate is used for new connections.
	cert, key = theirs.issue(t, dir, "gateway", 5)
	must(t, os.Chtimes(cert, time.Now(), time.Now().Add(time.Second)))
	run(t, "whoami", "--gateway", "https://"+open, "--ca", theirs.file).ends(t, exit.CodeDone, "")
	must(t, os.WriteFile(cert, []byte("half"), 0o600))
	run(t, "whoami", "--gateway", "https://"+open, "--ca", theirs.file).ends(t, exit.CodeDone, "")
}

func TestGatewayChecksItsCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := newAuthority(t, "ours").issue(t, dir, "gateway", 2)
	for says, args := range map[string][]string{
		"--tls-key is missing":      {"--tls-cert", cert},
		"--tls-cert is missing":     {"--tls-key", key},
		"--tls-cert, --tls-key: ":   {"--tls-cert", key, "--tls-key", cert},
		"--tls-client-ca: ":         {"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", key},
		"no such file or directory": {"--tls-cert", cert + ".missing", "--tls-key", key},
	} {
		run(t, append([]string{"gateway"}, args...)...).ends(t, exit.CodeUsage, says)
	}
}
