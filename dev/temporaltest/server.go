package temporaltest

import (
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"

	"switchyard/dev/testneeds"
)

// program is the process that runs the servers. `go run` caches the linked program in Go's build cache.
const program = "switchyard/dev/temporaltest/server"

// Options configures a server.
type Options struct {
	// SearchAttributes are the search attributes of the default namespace. nil means those of runs.
	SearchAttributes map[string]enumspb.IndexedValueType
}

// host is the process that runs all servers of this one. It runs while there is at least one server.
var host struct {
	sync.Mutex
	servers int
	client  *rpc.Client
}

// Server is a Temporal server in memory. It ends with Stop, or at the latest with the process that started it.
type Server struct{ address string }

// Start starts a server. It is safe for concurrent use.
func Start(opts Options) (*Server, error) {
	client, err := open()
	if err != nil {
		return nil, err
	}
	var s Server
	if err := client.Call("Servers.Start", opts, &s.address); err != nil {
		return nil, errors.Join(fmt.Errorf("start a Temporal server: %w", err), release())
	}
	return &s, nil
}

// Address returns the host and port of the server's frontend.
func (s *Server) Address() string { return s.address }

// Stop stops the server. It must be called only once.
func (s *Server) Stop() error {
	host.Lock()
	client := host.client
	host.Unlock()
	return errors.Join(client.Call("Servers.Stop", s.address, &struct{}{}), release())
}

// open returns the connection to the process of the servers, and counts one more server. The caller must call release
// when that server ends.
func open() (*rpc.Client, error) {
	host.Lock()
	defer host.Unlock()
	if host.servers == 0 {
		if err := testneeds.Sources(program); err != nil {
			return nil, err
		}
		p, err := run()
		if err != nil {
			return nil, err
		}
		host.client = rpc.NewClient(p)
	}
	host.servers++
	return host.client, nil
}

func release() error {
	host.Lock()
	defer host.Unlock()
	host.servers--
	if host.servers > 0 {
		return nil
	}
	return host.client.Close()
}

// process is a running program with its output and input.
type process struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
}

func run() (*process, error) {
	cmd := exec.Command("go", "run", program)
	cmd.Stderr = os.Stderr
	// The servers of tests are short of processor time, not of memory.
	cmd.Env = append(os.Environ(), "GOGC=400")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("go run %s: %w", program, err)
	}
	return &process{stdout, stdin, cmd}, nil
}

// Close ends the program and waits until it has ended.
func (p *process) Close() error { return errors.Join(p.WriteCloser.Close(), p.cmd.Wait()) }
