package node

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Names of the capabilities that Detect finds.
const (
	// GPUCapability is "nvidia" where an NVIDIA driver shows a GPU.
	GPUCapability = "gpu"
	// DockerCapability is "true" where a Docker engine answers, and
	// DockerVersionCapability its version.
	DockerCapability        = "docker"
	DockerVersionCapability = "docker-version"
	// KubernetesCapability is the current context of kubectl, or "in-cluster" in a pod.
	KubernetesCapability = "kubernetes"
	// SandboxCapability is "true" where shell tasks can run in a sandbox; tasks that ask
	// for one are placed by it.
	SandboxCapability = "sandbox"
	// QEMUVersionCapability is the version of QEMU, where virtual machines can run.
	QEMUVersionCapability = "qemu-version"
)

const (
	// dockerTimeout bounds what Docker is asked: an engine that hangs runs nothing.
	dockerTimeout = 2 * time.Second
	// dockerSocket is where Docker listens unless DOCKER_HOST says otherwise.
	dockerSocket = "unix:///var/run/docker.sock"
	// longestAnswer is how much of an answer of Docker is read.
	longestAnswer = 64 << 10
)

// Facts are what a machine has that tasks may ask for.
type Facts struct {
	// NVIDIA: the NVIDIA driver runs and shows this process a GPU.
	NVIDIA bool
	// Docker: an engine answers; DockerVersion may be empty then all the same.
	Docker        bool
	DockerVersion string
	// KubeContext is the current context of kubectl; empty: none.
	KubeContext string
	// Sandbox: shell tasks can run in one. Detect leaves it to whoever has the executor.
	Sandbox bool
	// QEMU: virtual machines can run, of QEMUVersion; KVM: by the processor, and not emulated. Detect leaves them to whoever has
	// the executor.
	QEMU, KVM   bool
	QEMUVersion string
}

// Capabilities returns those of a node: what was detected, and over it what a
// person said of the node, whose word counts.
//
// Facts become capabilities and never executor types. The executor types of a
// node are the executors that its worker has been given, which are those that
// this binary has; what an executor needs of the machine decides whether it is
// given, and never makes up for one that is not there. So a node with Docker is
// one with docker=true, but no node for tasks of type container before there is an
// executor for them.
func (f Facts) Capabilities(said map[string]string) map[string]string {
	found := map[string]string{}
	if f.NVIDIA {
		found[GPUCapability] = "nvidia"
	}
	if f.Docker {
		found[DockerCapability] = "true"
		if f.DockerVersion != "" {
			found[DockerVersionCapability] = f.DockerVersion
		}
	}
	if f.KubeContext != "" {
		found[KubernetesCapability] = f.KubeContext
	}
	if f.Sandbox {
		found[SandboxCapability] = "true"
	}
	if f.QEMU {
		found[v1.QEMUCapability], found[v1.KVMCapability] = "true", strconv.FormatBool(f.KVM)
	}
	if f.QEMUVersion != "" {
		found[QEMUVersionCapability] = f.QEMUVersion
	}
	maps.Copy(found, said)
	return found
}

// Surroundings are where Detect looks. The zero value is not usable; see SystemSurroundings.
type Surroundings struct {
	// Getenv reads the environment.
	Getenv func(string) string
	// Home is the home directory; empty: none.
	Home string
	// Command runs nvidia-smi.
	Command Command
	// Token is the file that Kubernetes puts into pods.
	Token string
	// Logger receives what was found.
	Logger *slog.Logger
}

// SystemSurroundings are those of the process.
func SystemSurroundings(logger *slog.Logger) Surroundings {
	home, _ := os.UserHomeDir() // a service may have none
	return Surroundings{
		Getenv: os.Getenv, Home: home, Command: systemCommand, Logger: logger,
		Token: "/var/run/secrets/kubernetes.io/serviceaccount/token",
	}
}

// Detect looks for Docker, Kubernetes and NVIDIA GPUs. What is not there, or
// does not answer in time, is absent: that is no error. It takes as long as the
// slowest of them, 5 s at most.
func Detect(ctx context.Context, s Surroundings) Facts {
	var f Facts
	nvidia := make(chan bool, 1)
	gpuCtx, cancel := context.WithTimeout(ctx, firstGPUs)
	defer cancel()
	go func() { nvidia <- s.nvidia(gpuCtx) }()
	f.Docker, f.DockerVersion = s.docker(ctx)
	f.KubeContext = s.kubeContext()
	select {
	case f.NVIDIA = <-nvidia:
	case <-gpuCtx.Done(): // nvidia-smi may hang so that it cannot even be killed
	}
	s.Logger.Debug("detected on this machine", "nvidia", f.NVIDIA, "docker", f.Docker, "dockerVersion", f.DockerVersion, "kubernetes", f.KubeContext)
	return f
}

// nvidia asks nvidia-smi, because /proc shows a container the GPUs of its host too.
func (s Surroundings) nvidia(ctx context.Context) bool {
	out, err := s.Command(ctx, "nvidia-smi", "--list-gpus")
	return err == nil && len(strings.TrimSpace(string(out))) > 0
}

// docker asks the engine whether it is there, and for its version.
func (s Surroundings) docker(ctx context.Context) (found bool, version string) {
	host := s.Getenv("DOCKER_HOST")
	if host == "" {
		host = dockerSocket
	}
	address, err := url.Parse(host)
	if err != nil {
		return false, ""
	}
	var network, target string
	switch address.Scheme {
	case "unix":
		network, target = "unix", address.Path
	case "tcp", "http":
		network, target = "tcp", address.Host
	default: // ssh and npipe need more than a connection; so does TCP with TLS, which does not answer
		return false, ""
	}
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, target)
	}}
	defer transport.CloseIdleConnections()
	ask := func(path string) (http.Header, []byte) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker"+path, nil)
		if err != nil {
			return nil, nil
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return nil, nil
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
		if err != nil || resp.StatusCode != http.StatusOK {
			return nil, nil
		}
		return resp.Header, body
	}
	// Something else may listen there; only Docker, and what stands in for it, names its API.
	header, _ := ask("/_ping")
	if header.Get("Api-Version") == "" {
		return false, ""
	}
	var about struct{ Version string }
	if _, body := ask("/version"); json.Unmarshal(body, &about) != nil {
		return true, ""
	}
	return true, about.Version
}
