package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"
)

// tlsHint returns the remedy for a connection error caused by TLS, or "" for any other error.
func (a *Client) tlsHint(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "name the authority that issued its certificate with --ca FILE or SWITCHYARD_CA"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "use a name from its certificate"
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return "renew the gateway's certificate, or correct a wrong clock"
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "server gave HTTP response to HTTPS client"), strings.Contains(text, "first record does not look like a TLS handshake"):
		return "it serves http: use an http:// URL"
	case strings.Contains(text, "certificate required"):
		return noCertificate
	case strings.Contains(text, "unknown certificate authority"), strings.Contains(text, "tls: bad certificate"):
		return strangeCertificate
	}
	return ""
}

// probeTimeout bounds the probe of a gateway's protocol.
const probeTimeout = 2 * time.Second

// cutHint returns the remedy if the gateway cut a connection because of TLS, else "". A TLS server closes plain http
// connections without an error, and a client with a rejected certificate may not receive the alert.
func (a *Client) cutHint(gateway string) string {
	u, err := url.Parse(gateway)
	if err != nil {
		return ""
	}
	asks := false
	// The probe sends no data, so it need not verify the certificate.
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: probeTimeout}, "tcp", u.Host, &tls.Config{
		InsecureSkipVerify: true, MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asks = true
			return &tls.Certificate{}, nil
		},
	})
	if err == nil {
		_ = conn.Close()
	}
	switch {
	case u.Scheme == "https" && asks && a.showsCertificate:
		return strangeCertificate
	case u.Scheme == "https" && asks:
		return noCertificate
	case u.Scheme == "http" && err == nil:
		return "it serves https: use an https:// URL"
	}
	return ""
}

// Hints for a gateway that asks for a certificate.
const (
	noCertificate      = "it requires a client certificate: use --client-cert FILE and --client-key FILE"
	strangeCertificate = "it rejects the certificate of --client-cert; check which authority issued it"
)
