package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"switchyard/activities/store/storekey"
)

// SpoolOptions configures where values are kept while a store is away.
type SpoolOptions struct {
	// Dir is a folder on the node for this process alone. It is created if necessary. Values that a killed process has
	// left there are stored first.
	Dir string
	// LimitBytes bounds the total size of the spooled values. 0 means 1 GiB.
	LimitBytes int64
	// HasSuccessor is set if another process is about to use Dir: it stores what this one cannot. Close then waits only shortly for
	// a store that is away.
	HasSuccessor bool
	Logger       *slog.Logger
}

const defaultSpoolBytes = 1 << 30

// WithSpool returns the store in the form that a node uses, which never waits long for it. While the store is
// unreachable, Put keeps values in files on the node, and a background loop stores them in order once the store is back.
// Get and Keys find them meanwhile. The Put that notices that the store is away takes at most some seconds, and each
// later one only as long as writing a file. Close of the returned store uploads what it can and leaves s open.
func (s *Store) WithSpool(ctx context.Context, o SpoolOptions) (*Store, error) {
	up, ok := s.backend.(upstream)
	if !ok {
		up = direct{s.backend}
	}
	spooling, err := newSpooler(ctx, up, o)
	if err != nil {
		return nil, err
	}
	return newStore(spooling), nil
}

// Spooled returns how many values on this node wait for the store.
func (s *Store) Spooled() int {
	if sp, ok := s.backend.(*spooler); ok {
		n, _ := sp.spool.size()
		return n
	}
	return 0
}

// upstream is the store to which a spooler uploads values.
type upstream interface {
	backend
	// storeOnce stores a value with one try. With ifAbsent it does so only if the key has none; existed reports whether
	// it had.
	storeOnce(ctx context.Context, key string, value []byte, ifAbsent bool) (existed bool, err error)
}

var _ upstream = (*remote)(nil)

// direct is the upstream for a store that this process writes directly. Each put is one try.
type direct struct{ backend }

func (d direct) storeOnce(ctx context.Context, key string, value []byte, ifAbsent bool) (existed bool, err error) {
	if ifAbsent {
		return d.putIfAbsent(ctx, key, value)
	}
	return false, d.put(ctx, key, value)
}

// spooler stores values upstream, and spools those that it cannot store there. The values of a group go upstream in order
// of arrival: while one of them is spooled, later ones are spooled, too.
type spooler struct {
	upstream
	spool *spool
	log   *slog.Logger
	// away is set if the last try did not get through.
	away         atomic.Bool
	hasSuccessor bool

	// added signals a new value in the spool to the loop; closing signals the end.
	added   chan struct{}
	closing chan struct{}
	ended   chan struct{}
	cancel  context.CancelFunc
}

var _ backend = (*spooler)(nil)

func newSpooler(ctx context.Context, up upstream, o SpoolOptions) (*spooler, error) {
	if o.LimitBytes <= 0 {
		o.LimitBytes = defaultSpoolBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	files, err := openSpool(ctx, o.Dir, o.LimitBytes)
	if err != nil {
		return nil, err
	}
	if n, bytes := files.size(); n > 0 {
		o.Logger.Info("values remain from an earlier process, which could not store them", "spool", o.Dir, "values", n, "bytes", bytes)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &spooler{
		upstream: up, spool: files, log: o.Logger, hasSuccessor: o.HasSuccessor,
		added: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}), cancel: cancel,
	}
	go s.upload(ctx)
	return s, nil
}

// tryTimeout returns how long a store may take for a value before it counts as away: some seconds plus one for each MiB.
func tryTimeout(bytes int) time.Duration {
	return 3*time.Second + time.Duration(bytes>>20)*time.Second
}

// isUnspooled reports whether a value never waits in the spool: contents of artifacts are too many, a draft protects chunks only
// once it is in the store, and a task that starts on another node needs the manifest at once.
func isUnspooled(key string) bool {
	node, err := storekey.ParseNode(key)
	return strings.HasPrefix(key, storekey.ChunksPrefix) || err == nil && (node.Kind == storekey.DraftValue || node.Kind == storekey.ArtifactValue)
}

// storeUnspooled stores a value with one try.
func (s *spooler) storeUnspooled(ctx context.Context, key string, value []byte, ifAbsent bool) (existed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, uploadPatience*tryTimeout(len(value)))
	defer cancel()
	return s.storeOnce(ctx, key, value, ifAbsent)
}

func (s *spooler) put(ctx context.Context, key string, value []byte) error {
	if len(value) > MaxValueBytes {
		return errTooLarge
	}
	if isUnspooled(key) {
		_, err := s.storeUnspooled(ctx, key, value, false)
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.away.Load() && !s.spool.waits(key) {
		try, cancel := context.WithTimeout(ctx, tryTimeout(len(value)))
		_, err := s.storeOnce(try, key, value, false)
		cancel()
		if err == nil || !isAway(err) {
			return err
		}
		if ctx.Err() == nil {
			s.lost(err)
		}
	}
	// Even if ctx has ended meanwhile, spooling the value takes almost no time.
	_, _, err := s.keep(key, value, false)
	return err
}

// putIfAbsent retries for as long as ctx allows, because only the store knows whether the key has a value. Meanwhile the
// value is in the spool, so that it survives the process. If both this call and the upload of the spool store the value,
// it counts as one that existed.
func (s *spooler) putIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error) {
	if len(value) > MaxValueBytes {
		return false, errTooLarge
	}
	if isUnspooled(key) {
		return s.storeUnspooled(ctx, key, value, true)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return false, ctx.Err()
	}
	ctx, cancel := orPatience(ctx)
	defer cancel()
	var kept *spooled
	for pause := firstPause; (kept != nil || !s.spool.waits(key)) && ctx.Err() == nil; pause = min(2*pause, longestPause) {
		try, cancel := context.WithTimeout(ctx, tryTimeout(len(value)))
		existed, err := s.storeOnce(try, key, value, true)
		cancel()
		if err == nil {
			s.found()
			return existed, s.spool.remove(kept)
		}
		if !isAway(err) {
			return false, errors.Join(err, s.spool.remove(kept))
		}
		if ctx.Err() == nil {
			s.lost(err)
		}
		if kept == nil {
			// If the spool has no room, the tries continue.
			if kept, existed, err = s.keep(key, value, true); existed {
				return true, err
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	if kept == nil {
		_, existed, err = s.keep(key, value, true)
	}
	return existed, err
}

// keep spools a value (see [spool.add]).
func (s *spooler) keep(key string, value []byte, ifAbsent bool) (kept *spooled, existed bool, err error) {
	kept, existed, err = s.spool.add(key, value, ifAbsent)
	select {
	case s.added <- struct{}{}:
	default:
	}
	return kept, existed, err
}

// lost records that a try did not get through, and found that one did.
func (s *spooler) lost(err error) {
	if !s.away.Swap(true) {
		s.log.Warn("the store is away; values are kept on this node until it is back", "store", s.location(), "spool", s.spool.dir, "error", err)
	}
}

func (s *spooler) found() {
	if s.away.Swap(false) {
		values, bytes := s.spool.size()
		s.log.Info("the store is back", "store", s.location(), "spooled", values, "bytes", bytes)
	}
}

func (s *spooler) get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.spool.get(key)
	if !errors.Is(err, ErrNotFound) {
		return value, err
	}
	return s.upstream.get(ctx, key)
}

// keys merges the keys of the spool into those upstream.
func (s *spooler) keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		// The spool is listed first, so that no key is missed that moves upstream meanwhile.
		spooled := s.spool.keys(prefix)
		for key, err := range s.upstream.keys(ctx, prefix) {
			for err == nil && len(spooled) > 0 && spooled[0] <= key {
				if spooled[0] < key && !yield(spooled[0], nil) {
					return
				}
				spooled = spooled[1:]
			}
			if !yield(key, err) || err != nil {
				return
			}
		}
		for _, key := range spooled {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// closeTimeout bounds how long close uploads values from the spool, and awayCloseTimeout if the store is away and another process
// follows.
const closeTimeout, awayCloseTimeout = 4 * time.Second, 500 * time.Millisecond

// close leaves the upstream open.
func (s *spooler) close() error {
	close(s.closing)
	timeout := closeTimeout
	if s.hasSuccessor && s.away.Load() {
		timeout = awayCloseTimeout
	}
	select {
	case <-s.ended:
	case <-time.After(timeout):
	}
	s.cancel()
	<-s.ended
	if values, bytes := s.spool.size(); values > 0 {
		s.log.Warn("values stay on this node until a worker is started here with the same spool",
			"spool", s.spool.dir, "values", values, "bytes", bytes)
	}
	if err := s.spool.close(); err != nil {
		return fmt.Errorf("close the spool: %w", err)
	}
	return nil
}
