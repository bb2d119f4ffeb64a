package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// bare returns surroundings in which Detect finds nothing.
func bare(t *testing.T) Surroundings {
	env := map[string]string{"DOCKER_HOST": "unix://" + filepath.Join(t.TempDir(), "nobody.sock")}
	return Surroundings{
		Getenv: func(key string) string { return env[key] },
		Command: func(context.Context, string, ...string) ([]byte, error) {
			return nil, exec.ErrNotFound
		},
		DockerTimeout: 2 * time.Minute, // however busy this machine is
		Token:         filepath.Join(t.TempDir(), "token"),
		Logger:        slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func (s *Surroundings) setenv(key, value string) {
	before := s.Getenv
	s.Getenv = func(k string) string {
		if k == key {
			return value
		}
		return before(k)
	}
}

func TestDetectNothing(t *testing.T) {
	if got := Detect(t.Context(), bare(t)); got != (Facts{}) {
		t.Errorf("got %+v", got)
	}
	if got := (Facts{}).Capabilities(nil); len(got) > 0 {
		t.Errorf("capabilities %v", got)
	}
}

func TestDetectNVIDIA(t *testing.T) {
	says := func(out string, err error) Command {
		return func(_ context.Context, name string, _ ...string) ([]byte, error) {
			if name != "nvidia-smi" {
				return nil, exec.ErrNotFound
			}
			return []byte(out), err
		}
	}
	for name, test := range map[string]struct {
		command Command
		want    bool
	}{
		"a GPU":  {says("GPU 0: NVIDIA GeForce RTX 3080 (UUID: GPU-1)\n", nil), true},
		"none":   {says("\n", nil), false},
		"failed": {says("NVIDIA-SMI has failed", errors.New("exit status 9")), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := bare(t)
			s.Command = test.command
			if got := Detect(t.Context(), s).NVIDIA; got != test.want {
				t.Errorf("%s: got %v", name, got)
			}
		})
	}
}

// TestDetectHungDriver checks that Detect does not wait for an nvidia-smi that hangs in the driver.
func TestDetectHungDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bare(t)
		s.Logger = slog.New(slog.DiscardHandler)
		free := make(chan struct{})
		s.Command = func(context.Context, string, ...string) ([]byte, error) {
			<-free
			return []byte("GPU 0"), nil
		}
		began := time.Now()
		if Detect(t.Context(), s).NVIDIA || time.Since(began) != firstGPUs {
			t.Errorf("took %s", time.Since(began))
		}
		close(free)
	})
}

func TestDetectDocker(t *testing.T) {
	engine := http.NewServeMux()
	engine.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.50") })
	versioned := http.NewServeMux()
	versioned.Handle("/_ping", engine)
	versioned.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"Version":"28.2.2","Os":"linux"}`))
	})
	broken := http.NewServeMux()
	broken.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })

	for name, test := range map[string]struct {
		handler http.Handler
		network string
		want    Facts
	}{
		"socket":       {versioned, "unix", Facts{Docker: true, DockerVersion: "28.2.2"}},
		"tcp":          {versioned, "tcp", Facts{Docker: true, DockerVersion: "28.2.2"}},
		"no version":   {engine, "tcp", Facts{Docker: true}},
		"broken":       {broken, "tcp", Facts{}},
		"another kind": {http.NotFoundHandler(), "tcp", Facts{}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.network == "unix" && runtime.GOOS == "windows" {
				t.Skip("Docker has a named pipe there")
			}
			address := "127.0.0.1:0"
			if test.network == "unix" {
				dir, err := os.MkdirTemp("", "d") // paths of sockets must be short
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(dir) })
				address = filepath.Join(dir, "s")
			}
			listener, err := net.Listen(test.network, address)
			if err != nil {
				t.Fatal(err)
			}
			server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: test.handler}}
			server.Start()
			defer server.Close()
			s := bare(t)
			s.setenv("DOCKER_HOST", test.network+"://"+listener.Addr().String())
			if got := Detect(t.Context(), s); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	s := bare(t)
	for _, host := range []string{"ssh://somewhere", "npipe:////./pipe/docker_engine", "://"} {
		s.setenv("DOCKER_HOST", host)
		if got := Detect(t.Context(), s); got.Docker {
			t.Errorf("%s: Docker is there", host)
		}
	}
}

// TestDetectHungDocker checks that an engine that accepts connections and never replies is not
// detected and delays nothing for long.
func TestDetectHungDocker(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := bare(t)
	s.DockerTimeout = 100 * time.Millisecond
	s.setenv("DOCKER_HOST", "tcp://"+listener.Addr().String())
	if got := Detect(t.Context(), s); got.Docker {
		t.Error("Docker is there")
	}
}

func TestDetectKubernetes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(".kube/config", "apiVersion: v1\ncurrent-context: home\ncontexts:\n- name: home\n  context: {cluster: c, user: u}\n")
	current := write("current", "current-context: prod\n")
	contexts := write("contexts", "current-context: other\ncontexts: [{name: prod}, {name: other}]\n")
	odd := write("odd", "{")
	gone := filepath.Join(dir, "gone")
	token := write("token", "x")

	list := func(files ...string) string {
		joined := ""
		for i, f := range files {
			if i > 0 {
				joined += string(filepath.ListSeparator)
			}
			joined += f
		}
		return joined
	}
	for name, test := range map[string]struct {
		home, config, token string
		pod                 bool
		want                string
	}{
		"home":                 {home: dir, want: "home"},
		"first wins":           {home: dir, config: list(gone, odd, current, contexts), want: "prod"},
		"another order":        {config: list(contexts, current), want: "other"},
		"context is not there": {config: current},
		"none":                 {home: filepath.Join(dir, "nowhere")},
		"pod":                  {token: token, pod: true, want: "in-cluster"},
		"token without a pod":  {token: token},
		"config in a pod":      {home: dir, token: token, pod: true, want: "home"},
	} {
		s := bare(t)
		s.Home = test.home
		s.setenv("KUBECONFIG", test.config)
		if test.token != "" {
			s.Token = test.token
		}
		if test.pod {
			s.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
		}
		if got := Detect(t.Context(), s).KubeContext; got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestCapabilities checks that configured capabilities override detected ones.
func TestCapabilities(t *testing.T) {
	facts := Facts{NVIDIA: true, Docker: true, DockerVersion: "28.2.2", KubeContext: "prod", Sandbox: true, QEMU: true, QEMUVersion: "7.2.0"}
	said := map[string]string{"gpu": "amd", "disk": "ssd"}
	got := facts.Capabilities(said)
	want := map[string]string{"gpu": "amd", "disk": "ssd", "docker": "true", "docker-version": "28.2.2", "kubernetes": "prod", "sandbox": "true",
		"qemu": "true", "qemu-version": "7.2.0", "kvm": "false"}
	if !maps.Equal(got, want) || len(said) != 2 {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (Facts{NVIDIA: true}).Capabilities(nil); !maps.Equal(got, map[string]string{"gpu": "nvidia"}) {
		t.Errorf("got %v", got)
	}
}

// TestDetectRunsOnThisMachine runs Detect on the real machine, whatever it has.
func TestDetectRunsOnThisMachine(t *testing.T) {
	t.Logf("%+v", Detect(t.Context(), SystemSurroundings(slog.New(slog.NewTextHandler(t.Output(), nil)))))
}
