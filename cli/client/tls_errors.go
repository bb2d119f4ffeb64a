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

// tlsHint returns what helps against an error of a connection that TLS is at fault for, or "" if it is not.
func (a *Client) tlsHint(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "name the authority of its certificate with --ca FILE, or SWITCHYARD_CA"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "reach it by a name that its certificate has"
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return "the certificate of the gateway has to be renewed, or a clock is wrong"
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "server gave HTTP response to HTTPS client"), strings.Contains(text, "first record does not look like a TLS handshake"):
		return "it serves http: name it as http://..."
	case strings.Contains(text, "certificate required"), strings.Contains(text, "tls: bad certificate"):
		return "it asks for a certificate: --client-cert FILE and --client-key FILE"
	case strings.Contains(text, "unknown certificate authority"):
		return "it does not accept the certificate of --client-cert; is it of another authority?"
	}
	return ""
}

// probeTimeout bounds a look at what a gateway speaks.
const probeTimeout = 2 * time.Second

// servesTLS reports whether what listens at a URL of http speaks TLS, which cuts the connections of http without a word.
func (a *Client) servesTLS() bool {
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "http" {
		return false
	}
	// Nothing is sent, and so nothing has to be verified.
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: probeTimeout}, "tcp", u.Host, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
