package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// ClaimKey is the key of the text that names the cluster to which a store belongs.
const ClaimKey = "cluster"

// ErrForeign is in the chain of the error of every method if the store belongs to another cluster.
var ErrForeign = errors.New("the store belongs to another cluster")

// Claim says to which cluster a store belongs.
type Claim struct {
	// Cluster is the ID of the cluster's Temporal namespace.
	Cluster string
	// Since is when the cluster claimed the store. Values that are older may be those of other clusters.
	Since time.Time
}

// ClaimFor binds the store to a cluster. The first cluster that uses a store owns it. For all others every method that
// reads or writes values returns ErrForeign, so that they neither mix their values with the owner's nor remove those.
// A gateway enforces the claim on its own store. ClaimFor must be called before the first use of the Store and before
// WithSpool, and after LimitLogs.
//
// If this program writes a data level that the store does not have yet, it first records the level there, with the version.
// Values that it would misread are refused with a *historyv1.NewerDataError.
func (s *Store) ClaimFor(cluster, version string) {
	if b, ok := s.backend.(sizer); ok {
		s.backend = &claimed{sizer: b, cluster: cluster, version: version}
	}
}

// Claim reads whose the store is, even if it has been read before. It returns ErrForeign if that has changed, and a
// zero Claim if ClaimFor was not called.
func (s *Store) Claim(ctx context.Context) (Claim, error) {
	c, ok := s.backend.(*claimed)
	if !ok {
		return Claim{}, nil
	}
	claim, err := c.read(ctx)
	if err != nil {
		return Claim{}, fmt.Errorf("read the cluster of the store %s: %w", s.Location(), err)
	}
	return claim, nil
}

// claimed is a backend that serves one cluster.
type claimed struct {
	sizer
	cluster string
	version string      // of this program
	owned   atomic.Bool // true once the claim has been read
}

// check returns an error unless the store belongs to the cluster.
func (c *claimed) check(ctx context.Context) error {
	if c.owned.Load() {
		return nil
	}
	_, err := c.read(ctx)
	return err
}

// read returns the claim. It writes one if the store has none.
func (c *claimed) read(ctx context.Context) (Claim, error) {
	text, err := c.sizer.ensure(ctx, ClaimKey, c.cluster+" "+time.Now().UTC().Format(time.RFC3339))
	if err != nil {
		return Claim{}, err
	}
	claim, err := parseClaim(text)
	if err != nil {
		return Claim{}, err
	}
	if err := c.use(ctx, claim); err != nil {
		c.owned.Store(false)
		return Claim{}, err
	}
	c.owned.Store(true)
	return claim, nil
}

// use prepares the store for this program unless the store has another owner or values that the program would misread.
func (c *claimed) use(ctx context.Context, claim Claim) error {
	if err := claim.CheckOwner(c.cluster, c.location()); err != nil {
		return err
	}
	if err := checkLevel(ctx, c.sizer); err != nil {
		return err
	}
	return raiseLevel(ctx, c.sizer, historyv1.WrittenDataLevel(), c.version)
}

func parseClaim(text string) (Claim, error) {
	id, since, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return Claim{}, fmt.Errorf("its value %q is damaged: %w", ClaimKey, err)
	}
	return Claim{Cluster: id, Since: at}, nil
}

// CheckOwner returns ErrForeign if the claim on the store at a location is that of another cluster.
func (c Claim) CheckOwner(cluster, location string) error {
	if c.Cluster == cluster {
		return nil
	}
	return fmt.Errorf("%w: %s is that of the Temporal namespace with the ID %s since %s, and this cluster's has the ID %s; choose another --store, or remove the value %q from the store if this cluster replaces that one for good",
		ErrForeign, location, c.Cluster, c.Since.Format(time.RFC3339), cluster, ClaimKey)
}

func (c *claimed) put(ctx context.Context, key string, value []byte) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	return c.sizer.put(ctx, key, value)
}

func (c *claimed) putIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error) {
	if err := c.check(ctx); err != nil {
		return false, err
	}
	return c.sizer.putIfAbsent(ctx, key, value)
}

func (c *claimed) get(ctx context.Context, key string) ([]byte, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return c.sizer.get(ctx, key)
}

func (c *claimed) keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	if err := c.check(ctx); err != nil {
		return failedSequence(err)
	}
	return c.sizer.keys(ctx, prefix)
}

func (c *claimed) runs(ctx context.Context) iter.Seq2[string, error] {
	if err := c.check(ctx); err != nil {
		return failedSequence(err)
	}
	return c.sizer.runs(ctx)
}

func (c *claimed) findChunks(ctx context.Context, digests [][]byte) ([]bool, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return c.sizer.findChunks(ctx, digests)
}

func (c *claimed) newest(ctx context.Context, run string) (time.Time, error) {
	if err := c.check(ctx); err != nil {
		return time.Time{}, err
	}
	return c.sizer.newest(ctx, run)
}

func (c *claimed) deleteRun(ctx context.Context, run string) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	return c.sizer.deleteRun(ctx, run)
}

func (c *claimed) delete(ctx context.Context, key string) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	return c.sizer.delete(ctx, key)
}

func (c *claimed) deleteOlder(ctx context.Context, prefix string, before time.Time) (removed int, err error) {
	if err := c.check(ctx); err != nil {
		return 0, err
	}
	return c.sizer.deleteOlder(ctx, prefix, before)
}

func (c *claimed) ensure(ctx context.Context, key, text string) (string, error) {
	if err := c.check(ctx); err != nil {
		return "", err
	}
	return c.sizer.ensure(ctx, key, text)
}

func (c *claimed) size(ctx context.Context, prefix string) (int64, error) {
	if err := c.check(ctx); err != nil {
		return 0, err
	}
	return c.sizer.size(ctx, prefix)
}

// failedSequence yields only an error.
func failedSequence(err error) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", err) }
}
