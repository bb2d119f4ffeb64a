package tlsfiles

import (
	"crypto/tls"

	"switchyard/cli/exit"
)

// Client names the TLS files of a client.
type Client struct {
	// CA holds the authorities that may sign the certificate of a server. "" means those of the system.
	CA string
	// Cert and Key are the client's certificate and its key, or "" for none.
	Cert, Key string
}

// Config returns the TLS configuration of a client, or nil if no file is named.
func (c Client) Config() (*tls.Config, error) {
	switch {
	case c == Client{}:
		return nil, nil
	case c.Cert != "" && c.Key == "":
		return nil, exit.Usagef("--client-key is missing: give the key of the certificate %s, in PEM", c.Cert)
	case c.Cert == "" && c.Key != "":
		return nil, exit.Usagef("--client-cert is missing: give the certificate of the key %s, in PEM", c.Key)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pool, err := readPool(c.CA)
		if err != nil {
			return nil, exit.Usagef("--ca: %w", err)
		}
		cfg.RootCAs = pool
	}
	if c.Cert != "" {
		pair := &keyPair{cert: c.Cert, key: c.Key}
		if _, err := pair.current(nil); err != nil {
			return nil, exit.Usagef("--client-cert, --client-key: %w", err)
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.current(nil) }
	}
	return cfg, nil
}
