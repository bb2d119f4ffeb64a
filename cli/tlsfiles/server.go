package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"switchyard/cli/exit"
)

// Server names the TLS files of a server.
type Server struct {
	// Cert and Key are the certificate chain and its key.
	Cert, Key string
	// ClientCA holds the authorities that must have signed the certificates of clients. "" means that clients need
	// none.
	ClientCA string
}

// Config returns the TLS configuration of a server, or nil if no file is named. A replaced certificate is used for new
// connections.
func (s Server) Config() (*tls.Config, error) {
	switch {
	case s == Server{}:
		return nil, nil
	case s.Cert == "":
		return nil, exit.Usagef("--tls-cert is missing: give the certificate of the gateway, in PEM")
	case s.Key == "":
		return nil, exit.Usagef("--tls-key is missing: give the key of the certificate %s, in PEM", s.Cert)
	}
	pair := &keyPair{cert: s.Cert, key: s.Key}
	if _, err := pair.current(nil); err != nil {
		return nil, exit.Usagef("--tls-cert, --tls-key: %w", err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.current}
	if s.ClientCA != "" {
		pool, err := readPool(s.ClientCA)
		if err != nil {
			return nil, exit.Usagef("--tls-client-ca: %w", err)
		}
		cfg.ClientCAs, cfg.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return cfg, nil
}

// keyPair is a certificate that is reloaded when its file changes. It is safe for concurrent use.
type keyPair struct {
	cert, key string

	mu      sync.Mutex
	read    *tls.Certificate
	changed time.Time // modification time of the certificate file
}

// current returns the certificate. If the file is unreadable, the previous certificate stays in use.
func (k *keyPair) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.cert)
	if err == nil && k.read != nil && info.ModTime().Equal(k.changed) {
		return k.read, nil
	}
	var fresh tls.Certificate
	if err == nil {
		fresh, err = tls.LoadX509KeyPair(k.cert, k.key)
	}
	switch {
	case err == nil:
		k.read, k.changed = &fresh, info.ModTime()
	case k.read == nil:
		return nil, err
	}
	return k.read, nil
}

// IsKeyPublic reports whether other users can read the key.
func (s Server) IsKeyPublic() bool {
	info, err := os.Stat(s.Key)
	return s.Key != "" && err == nil && info.Mode().Perm()&0o007 != 0
}

// readPool returns the certificates in a file.
func readPool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate in PEM", path)
	}
	return pool, nil
}
