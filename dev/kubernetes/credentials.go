package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// validity is how long certificates are valid. No test cluster lives longer.
const validity = 7 * 24 * time.Hour

// writeCredentials writes the keys of the cluster, its users and their kubeconfigs.
func (f files) writeCredentials(apiPort int) error {
	adminToken, nodeToken := rand.Text(), rand.Text()
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n%s,system:node:%s,%[3]s,system:nodes\n", adminToken, nodeToken, nodeName)
	return errors.Join(
		f.writeServerCertificate(),
		f.writeServiceAccountKey(),
		os.WriteFile(f.path("tokens.csv"), []byte(tokens), 0o600),
		f.writeKubeconfig("kubeconfig", apiPort, adminToken),
		f.writeKubeconfig("node.kubeconfig", apiPort, nodeToken),
	)
}

func (f files) writeKubeconfig(name string, apiPort int, token string) error {
	const only = "tests"
	config := clientcmdapi.NewConfig()
	config.Clusters[only] = &clientcmdapi.Cluster{
		Server: fmt.Sprintf("https://127.0.0.1:%d", apiPort), CertificateAuthority: f.path("pki/ca.crt"),
	}
	config.AuthInfos[only] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[only] = &clientcmdapi.Context{Cluster: only, AuthInfo: only}
	config.CurrentContext = only
	return clientcmd.WriteToFile(*config, f.path(name))
}

// writeServerCertificate writes the certificate of the API server and that of the authority that signed it.
func (f files) writeServerCertificate() error {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	// The hour allows for clocks that differ.
	from, to := time.Now().Add(-time.Hour), time.Now().Add(validity)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes-for-tests"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: from, NotAfter: to,
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return err
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, &serverKey.PublicKey, authorityKey)
	if err != nil {
		return err
	}
	serverKeyDER, err := x509.MarshalECPrivateKey(serverKey)
	if err != nil {
		return err
	}
	return errors.Join(
		f.writePEM("pki/ca.crt", "CERTIFICATE", authorityDER),
		f.writePEM("pki/apiserver.crt", "CERTIFICATE", serverDER),
		f.writePEM("pki/apiserver.key", "EC PRIVATE KEY", serverKeyDER),
	)
}

// writeServiceAccountKey writes the key that signs the tokens of service accounts. Without it no pod starts.
func (f files) writeServiceAccountKey() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return errors.Join(
		f.writePEM("pki/sa.key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		f.writePEM("pki/sa.pub", "PUBLIC KEY", public),
	)
}

func (f files) writePEM(name, kind string, der []byte) error {
	return os.WriteFile(f.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
