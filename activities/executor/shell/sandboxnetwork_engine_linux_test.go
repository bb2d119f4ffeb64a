//go:build engines

package shell

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

// dialer copies this program to where a sandbox sees it, and returns the path.
func (s *sandbox) dialer(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.base, "dialer")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSandboxReachesTheNodesNetworkOnlyIfRequested(t *testing.T) {
	s := newSandbox(t)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	name := fmt.Sprintf("@switchyard-test-%d", os.Getpid())
	abstract, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	program := s.dialer(t)
	for network, want := range map[string]string{
		"":     "tcp is out of reach\nunix is out of reach\ntcp answers\n",
		"none": "tcp is out of reach\nunix is out of reach\ntcp answers\n",
		"node": "tcp answers\nunix answers\ntcp answers\n",
	} {
		a, out := s.attempt(t, "")
		a.Spec = spec(t, map[string]any{
			"sandbox": true,
			"command": []any{program, dialArgument, "tcp/" + tcp.Addr().String(), "unix/" + name, "tcp/self"},
		})
		if network != "" {
			a.Spec.Fields["network"] = structpb.NewStringValue(network)
		}
		r, err := s.Run(t.Context(), a, func() {})
		if err != nil || r.ExitCode != 0 || out.String() != want {
			t.Errorf("network %q: %+v, error %v, got\n%swant\n%s", network, r, err, out, want)
		}
	}
}
