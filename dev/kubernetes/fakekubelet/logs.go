package fakekubelet

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// LogAnnotation is the output that the containers of a pod print when they start.
const LogAnnotation = annotationPrefix + "log"

// followAgain is how often a followed log checks that its container has ended.
const followAgain = 20 * time.Millisecond

// logServer is the part of a kubelet from which the API server reads logs.
type logServer struct {
	pods cache.Store
	port int32
}

// serveLogs serves the logs of pods until the context ends. The server has a self-signed certificate, which the
// cluster's API server accepts.
func serveLogs(ctx context.Context, pods cache.Store) (*logServer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(72 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &logServer{pods: pods, port: int32(listener.Addr().(*net.TCPAddr).Port)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.serve)
	server := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.ServeTLS(listener, "", "") }() // until the server is closed
	return s, nil
}

// serve writes the log of a container. The timestamps of its lines are derived from the creation time of the pod.
func (s *logServer) serve(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("namespace") + "/" + r.PathValue("pod")
	pod := s.find(key)
	if pod == nil || pod.Status.Phase == corev1.PodPending {
		http.Error(w, "there is no such container", http.StatusNotFound)
		return
	}
	query := r.URL.Query()
	since, _ := time.Parse(time.RFC3339, query.Get("sinceTime")) // zero selects all lines
	stamps, _ := strconv.ParseBool(query.Get("timestamps"))
	follow, _ := strconv.ParseBool(query.Get("follow"))
	out := bufio.NewWriter(w)
	at := pod.CreationTimestamp.Time
	for line := range strings.Lines(pod.Annotations[LogAnnotation]) {
		at = at.Add(time.Microsecond)
		if at.Before(since) {
			continue
		}
		if stamps {
			fmt.Fprint(out, at.UTC().Format(time.RFC3339Nano), " ")
		}
		fmt.Fprint(out, strings.TrimSuffix(line, "\n"), "\n")
	}
	if out.Flush() != nil {
		return
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	for follow {
		if pod := s.find(key); pod == nil || pod.Status.Phase != corev1.PodRunning {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(followAgain):
		}
	}
}

func (s *logServer) find(key string) *corev1.Pod {
	object, found, err := s.pods.GetByKey(key)
	if err != nil || !found {
		return nil
	}
	return object.(*corev1.Pod)
}
