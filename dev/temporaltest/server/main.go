package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"sync"

	"switchyard/dev/temporaltest"
	"switchyard/workers/embedded"
	"switchyard/workflows/visibility"
)

func main() {
	servers := &Servers{open: map[string]*embedded.Server{}}
	if err := rpc.Register(servers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rpc.ServeConn(stdio{os.Stdin, os.Stdout})
	if err := servers.stopAll(); err != nil {
		fmt.Fprintln(os.Stderr, "stop Temporal servers of tests:", err)
	}
}

// stdio combines this process's standard input and output into one connection.
type stdio struct {
	io.Reader
	io.WriteCloser
}

// Servers holds the running servers, by address. Package temporaltest calls its exported methods.
type Servers struct {
	mu   sync.Mutex
	open map[string]*embedded.Server
}

// Start starts a server and returns its address.
func (s *Servers) Start(opts temporaltest.Options, address *string) error {
	attributes := opts.SearchAttributes
	if attributes == nil {
		attributes = visibility.Types()
	}
	server, err := embedded.Start(context.Background(), embedded.Options{SearchAttributes: attributes})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*address = server.Address()
	s.open[*address] = server
	return nil
}

// Stop stops the server at an address.
func (s *Servers) Stop(address string, _ *struct{}) error {
	s.mu.Lock()
	server := s.open[address]
	delete(s.open, address)
	s.mu.Unlock()
	if server == nil {
		return fmt.Errorf("no server at %s", address)
	}
	return server.Stop()
}

func (s *Servers) stopAll() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.open {
		err = errors.Join(err, server.Stop())
	}
	return err
}
