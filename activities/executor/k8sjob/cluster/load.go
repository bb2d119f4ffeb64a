package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const (
	// userAgent identifies this program to clusters.
	userAgent = "switchyard"
	// qps and burst bound the requests of a node to a cluster. The server has flow control of its own.
	qps, burst = 200, 400
	// defaultNamespace is the namespace for a context that names none.
	defaultNamespace = "default"
	// namespaceFile holds the namespace of a pod.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// namedContexts bounds the contexts that an error names.
	namedContexts = 20
)

// loaded is a cluster as its kubeconfig describes it at present.
type loaded struct {
	cfg       Config
	text      []byte // the content of the kubeconfig
	rest      *rest.Config
	namespace string
}

// hasChanged reports whether the content of the kubeconfig differs from when it was loaded. In a pod it is always
// false: the client rereads the credential files by itself.
func (l *loaded) hasChanged() bool {
	if l.cfg.File == InCluster {
		return false
	}
	text, err := os.ReadFile(l.cfg.File)
	return err != nil || !bytes.Equal(text, l.text)
}

// load reads the kubeconfig of a cluster.
func load(cfg Config) (l *loaded, err error) {
	if cfg.File == InCluster {
		l, err = loadPod(cfg)
	} else {
		l, err = loadFile(cfg)
	}
	if err != nil {
		return nil, err
	}
	l.rest.UserAgent = userAgent
	l.rest.QPS, l.rest.Burst = qps, burst
	l.rest.ContentType = runtime.ContentTypeProtobuf
	l.rest.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if l.rest.ExecProvider != nil {
		l.rest.ExecProvider.StdinUnavailable = true
		l.rest.ExecProvider.StdinUnavailableMessage = "a node requests credentials unattended"
	}
	return l, nil
}

// loadPod loads the cluster of the pod that runs this process.
func loadPod(cfg Config) (*loaded, error) {
	if cfg.Context != "" {
		return nil, fmt.Errorf("%s has no contexts; remove :%s", InCluster, cfg.Context)
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("this process does not run in a pod; specify a kubeconfig")
	}
	if err != nil {
		return nil, fmt.Errorf("service account of this pod: %w; do not set automountServiceAccountToken to false", err)
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return nil, fmt.Errorf("namespace of this pod: %w", err)
	}
	return &loaded{cfg: cfg, rest: config, namespace: cmp.Or(strings.TrimSpace(string(namespace)), defaultNamespace)}, nil
}

// loadFile loads a cluster from a kubeconfig.
func loadFile(cfg Config) (*loaded, error) {
	text, err := os.ReadFile(cfg.File)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("kubeconfig %s does not exist; specify a path such as ~/.kube/config", cfg.File)
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	raw, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not a valid kubeconfig: %w", cfg.File, err)
	}
	context, err := contextOf(cfg, raw)
	if err != nil {
		return nil, err
	}
	for _, c := range raw.Clusters {
		c.LocationOfOrigin = cfg.File
	}
	for _, u := range raw.AuthInfos {
		u.LocationOfOrigin = cfg.File
	}
	if err := clientcmd.ResolveLocalPaths(raw); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", cfg.File, err)
	}
	client := clientcmd.NewNonInteractiveClientConfig(*raw, context, nil, nil)
	config, err := client.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("context %s of %s: %w", context, cfg.File, err)
	}
	if _, err := rest.TransportFor(config); err != nil {
		return nil, fmt.Errorf("context %s of %s: %w", context, cfg.File, err)
	}
	return &loaded{cfg: cfg, text: text, rest: config, namespace: cmp.Or(raw.Contexts[context].Namespace, defaultNamespace)}, nil
}

// contextOf returns the name of the kubeconfig's context that a flag selects.
func contextOf(cfg Config, raw *api.Config) (string, error) {
	name := cmp.Or(cfg.Context, raw.CurrentContext)
	if raw.Contexts[name] != nil {
		return name, nil
	}
	there := slices.Sorted(maps.Keys(raw.Contexts))
	if more := len(there) - namedContexts; more > 0 {
		there = append(there[:namedContexts], fmt.Sprintf("and %d more", more))
	}
	names := strings.Join(there, ", ")
	switch {
	case len(there) == 0:
		return "", fmt.Errorf("kubeconfig %s has no contexts; specify a complete kubeconfig", cfg.File)
	case name == "":
		return "", fmt.Errorf("kubeconfig %s has no current context; append a context to the file, as in %s=%s:%s (available: %s)", cfg.File, cfg.Name, cfg.File, there[0], names)
	case cfg.Context == "":
		return "", fmt.Errorf("current context %[2]s does not exist in kubeconfig %[1]s; append a context to the file (available: %[3]s)", cfg.File, name, names)
	}
	return "", fmt.Errorf("kubeconfig %s has no context %s (available: %s)", cfg.File, name, names)
}

// warningLog logs the warnings of a cluster, such as those of its pod security standards.
type warningLog struct {
	logger *slog.Logger
	name   string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warningLog) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if text != "" {
		w.logger.DebugContext(ctx, "cluster warns", "cluster", w.name, "warning", text)
	}
}
