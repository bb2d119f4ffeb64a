package shell

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

// dialArgument makes this program, run as a task, dial the addresses that follow.
const dialArgument = "shell-test-dial"

// dialIfAsked dials each address and prints which listeners answer. "self" stands for a listener of
// its own.
func dialIfAsked() {
	if len(os.Args) < 2 || os.Args[1] != dialArgument {
		return
	}
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("no listener:", err)
		os.Exit(1)
	}
	for _, address := range os.Args[2:] {
		network, address, _ := strings.Cut(address, "/")
		if address == "self" {
			address = own.Addr().String()
		}
		conn, err := net.Dial(network, address)
		if err == nil {
			conn.Close()
			fmt.Println(network, "answers")
		} else {
			fmt.Println(network, "is out of reach")
		}
	}
	os.Exit(0)
}

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
