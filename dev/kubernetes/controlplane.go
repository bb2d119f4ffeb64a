package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The names of services that commands of `up` use.
const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	kubeletService    = "kubelet"
)

// freePorts replaces each port 0 by a free port.
func freePorts(ports ...*int) error {
	for _, port := range ports {
		if *port != 0 {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		// The listeners stay open until all ports are chosen, so that no two are equal.
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// newClient returns a client of the cluster with all rights and no rate limit.
func (f files) newClient() (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.path("kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

// controlPlane returns the services of every cluster in start order.
func (f files) controlPlane(client *kubernetes.Clientset, o upOptions) []service {
	etcdURL := fmt.Sprintf("http://127.0.0.1:%d", o.etcdPort)
	return []service{
		{name: "etcd", program: self, args: []string{
			"etcd", "--data-dir", f.path("etcd"), "--client-url", etcdURL, "--peer-url", fmt.Sprintf("http://127.0.0.1:%d", o.etcdPeerPort),
		}, ready: func(ctx context.Context) error { return get(ctx, etcdURL+"/health") }},
		{name: apiServer, program: self, args: []string{
			"kube-apiserver",
			"--etcd-servers=" + etcdURL,
			"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", o.apiPort),
			"--endpoint-reconciler-type=none",
			"--tls-cert-file=" + f.path("pki/apiserver.crt"), "--tls-private-key-file=" + f.path("pki/apiserver.key"),
			"--cert-dir=" + f.path("pki"),
			"--token-auth-file=" + f.path("tokens.csv"),
			"--authorization-mode=Node,RBAC",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + f.path("pki/sa.pub"), "--service-account-signing-key-file=" + f.path("pki/sa.key"),
			"--service-cluster-ip-range=10.97.0.0/24",
			"--kubelet-preferred-address-types=InternalIP",
			// The default is five minutes each, and tests of lost nodes wait for them.
			"--default-not-ready-toleration-seconds=10", "--default-unreachable-toleration-seconds=10",
			"--profiling=false",
		}, ready: func(ctx context.Context) error {
			return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		}},
		{name: controllerManager, program: self, args: []string{
			"kube-controller-manager",
			"--kubeconfig=" + f.path("kubeconfig"), "--leader-elect=false", "--secure-port=0",
			"--service-account-private-key-file=" + f.path("pki/sa.key"), "--root-ca-file=" + f.path("pki/ca.crt"),
			"--node-monitor-grace-period=" + o.nodeGrace.String(), "--node-monitor-period=2s",
			// The default is 20 requests per second, so that 50 Jobs would take a minute.
			"--kube-api-qps=1000", "--kube-api-burst=1000", "--concurrent-job-syncs=20",
			"--profiling=false",
		}, ready: func(ctx context.Context) error {
			// No pod can be created in a namespace before its service account exists.
			_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
			return err
		}},
		{name: "kube-scheduler", program: self, args: []string{
			"kube-scheduler", "--kubeconfig=" + f.path("kubeconfig"), "--leader-elect=false", "--secure-port=0", "--profiling=false",
			"--kube-api-qps=1000", "--kube-api-burst=1000",
		}},
	}
}

// get returns an error unless the URL answers with status 200.
func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
