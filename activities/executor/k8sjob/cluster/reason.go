package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// isAnonymous reports whether a cluster refused a request because it had no credentials.
func isAnonymous(err error) bool { return strings.Contains(err.Error(), "system:anonymous") }

// reason explains why a cluster cannot be reached.
func (m *member) reason(err error) string {
	return reasonOf(err, m.loaded.rest.Host, m.remedy(), fmt.Sprintf("no answer within %s", m.options.Timeout))
}

// remedy returns advice on where to renew the credentials.
func (m *member) remedy() string {
	if m.cfg.File == InCluster {
		return "check the service account of the pod"
	}
	return "renew them in " + m.cfg.File + ", which is read again when it changes"
}

// reasonOf explains the error of a request to a host.
func reasonOf(err error, host, remedy, silence string) string {
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		op        *net.OpError
		status    apierrors.APIStatus
	)
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%s rejects the credentials, which are expired or invalid; %s", host, remedy)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("no credentials for %s; %s", host, remedy)
	case errors.As(err, &status):
		return fmt.Sprintf("%s answered %d: %s", host, status.Status().Code, status.Status().Message)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s: %s", host, silence)
	case utilnet.IsConnectionRefused(err):
		return host + " refused the connection; its API server is not running or has another address"
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %s cannot be resolved: %s", dns.Name, dns.Err)
	case errors.As(err, &authority):
		return fmt.Sprintf("the certificate of %s is signed by an unknown authority; check certificate-authority-data in the kubeconfig", host)
	case errors.As(err, &hostname), errors.As(err, &invalid):
		return fmt.Sprintf("the certificate of %s is not valid: %v", host, innermost(err))
	case errors.As(err, &op) && op.Op == "remote error":
		return fmt.Sprintf("%s aborted the TLS handshake (%v); check the client certificate in the kubeconfig", host, op.Err)
	}
	return err.Error()
}

// innermost returns the root cause of an error.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
