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

// Names of the capabilities that come from Facts.
const (
	// GPUCapability is "nvidia" on nodes where the NVIDIA driver shows a GPU.
	GPUCapability = "gpu"
	// DockerCapability is "true" on nodes where a Docker engine answers. DockerVersionCapability is the engine's version.
	DockerCapability        = "docker"
	DockerVersionCapability = "docker-version"
	// KubernetesCapability is the current context of kubectl, or "in-cluster" in a pod.
	KubernetesCapability = "kubernetes"
	// SandboxCapability is "true" on nodes that can run shell tasks in a sandbox. Tasks that ask for a sandbox are placed by it.
	SandboxCapability = "sandbox"
	// QEMUVersionCapability is the version of QEMU on nodes that can run virtual machines.
	QEMUVersionCapability = "qemu-version"
	// VersionCapability is the version of the worker.
	VersionCapability = "switchyard-version"
)

const (
	// dockerTimeout is the usual DockerTimeout.
	dockerTimeout = 5 * time.Second
	// dockerSocket is the address of Docker if DOCKER_HOST is not set.
	dockerSocket = "unix:///var/run/docker.sock"
	// longestAnswer bounds how much of a response of Docker is read, in bytes.
	longestAnswer = 64 << 10
)

// Facts describes what a machine has that tasks may ask for.
type Facts struct {
	// NVIDIA is set if the NVIDIA driver runs and shows this process a GPU.
	NVIDIA bool
	// Docker is set if an engine answers. DockerVersion may be "" even then.
	Docker        bool
	DockerVersion string
	// KubeContext is the current context of kubectl, or "".
	KubeContext string
	// Sandbox is set if shell tasks can run in a sandbox. Detect does not set it; the owner of the executor does.
	Sandbox bool
	// QEMU is set if virtual machines can run, QEMUVersion is the version of QEMU, and KVM is set if the processor runs the
	// virtual machines without emulation. Detect does not set them; the owner of the executor does.
	QEMU, KVM   bool
	QEMUVersion string
	// Version is the version of the worker, or "". Detect does not set it.
	Version string
}

// Capabilities returns the capabilities of a node: the detected ones, overridden by said, which a person has configured.
//
// Facts become capabilities, but never executor types. The executor types of a node are those of the executors that its worker
// has, and a worker has only executors of this binary. Facts may decide whether a worker gets an executor, but they do not
// replace a missing one. So a node with Docker has docker=true, but it runs no tasks of type container unless the worker has
// that executor.
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
	if f.Version != "" {
		found[VersionCapability] = f.Version
	}
	maps.Copy(found, said)
	return found
}

// Surroundings determines where Detect looks. The zero value is not usable; see SystemSurroundings.
type Surroundings struct {
	// Getenv reads an environment variable.
	Getenv func(string) string
	// Home is the home directory, or "".
	Home string
	// Command runs nvidia-smi.
	Command Command
	// DockerTimeout bounds the requests to Docker. An engine that hangs cannot run containers.
	DockerTimeout time.Duration
	// Token is the path of the file that Kubernetes mounts into pods.
	Token string
	// Logger receives what Detect found.
	Logger *slog.Logger
}

// SystemSurroundings returns the surroundings of this process.
func SystemSurroundings(logger *slog.Logger) Surroundings {
	home, _ := os.UserHomeDir() // a service may have none
	return Surroundings{
		Getenv: os.Getenv, Home: home, Command: systemCommand(commandDelay), DockerTimeout: dockerTimeout, Logger: logger,
		Token: "/var/run/secrets/kubernetes.io/serviceaccount/token",
	}
}

// Detect looks for Docker, Kubernetes and NVIDIA GPUs. What is missing or does not answer in time counts as absent, not as an
// error. Detect takes as long as the slowest check, at most 5 s.
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

// nvidia runs nvidia-smi, because in a container /proc also shows the GPUs of the host.
func (s Surroundings) nvidia(ctx context.Context) bool {
	out, err := s.Command(ctx, "nvidia-smi", "--list-gpus")
	return err == nil && len(strings.TrimSpace(string(out))) > 0
}

// docker checks whether a Docker engine answers, and returns its version.
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
	default: // ssh and npipe need more than a connection, and TCP with TLS does not answer plain HTTP
		return false, ""
	}
	ctx, cancel := context.WithTimeout(ctx, s.DockerTimeout)
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
	// Another program may listen there; only Docker and its substitutes send the version of their API.
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
