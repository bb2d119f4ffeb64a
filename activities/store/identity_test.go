package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// countedBackend counts the reads of its identity, which wait while its gate is closed.
type countedBackend struct {
	backend
	reads atomic.Int32
	gate  chan struct{}
	err   error
}

func (*countedBackend) ensure(context.Context, string, string) (string, error) { return "A", nil }

func (*countedBackend) location() string { return "counted" }

func (b *countedBackend) identify(context.Context) (string, error) {
	b.reads.Add(1)
	<-b.gate
	return "A", b.err
}

// TestManyNodesReadTheIdentityOnce covers a gateway that many nodes ask for the identity of its store.
func TestManyNodesReadTheIdentityOnce(t *testing.T) {
	t.Parallel()
	b := &countedBackend{gate: make(chan struct{}), err: errors.New("the store is away")}
	s := &Store{backend: b}
	if id, err := s.Identify(t.Context()); id != "A" || err != nil || b.reads.Load() != 0 {
		t.Errorf("the first call, which creates the identity: %q, %v", id, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Identify(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that cannot wait: %v", err)
	}
	var nodes sync.WaitGroup
	for range 1000 {
		nodes.Go(func() {
			if _, err := s.Identify(t.Context()); !errors.Is(err, b.err) {
				t.Error(err)
			}
		})
	}
	close(b.gate)
	nodes.Wait()
	if n := b.reads.Load(); n > 2 { // the calls take less than a second
		t.Errorf("1,000 nodes have read the store %d times", n)
	}
}
