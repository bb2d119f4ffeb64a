package live

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

// linger is how long a feed outlives its last follower, so that a loaded page finds it when it opens its stream.
const linger = 3 * time.Second

// errClosed ends the feeds when the gateway shuts down.
var errClosed = errors.New("the gateway is shutting down")

// Feeds holds one feed for each view that is being watched. It is safe for concurrent use. Close stops it.
type Feeds struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	byKey map[string]*feed
}

// NewFeeds returns an empty set of feeds.
func NewFeeds() *Feeds {
	ctx, cancel := context.WithCancel(context.Background())
	return &Feeds{ctx: ctx, cancel: cancel, byKey: map[string]*feed{}}
}

// Close ends all feeds and waits for them.
func (fs *Feeds) Close() {
	fs.mu.Lock()
	fs.cancel() // no further goroutine starts
	fs.mu.Unlock()
	fs.wg.Wait()
}

// Len returns the number of feeds.
func (fs *Feeds) Len() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return len(fs.byKey)
}

// follow returns the feed of a key and starts it if there is none. The caller must call release.
func (fs *Feeds) follow(key string, open Opener) (f *feed, release func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f = fs.byKey[key]; f == nil {
		ctx, cancel := context.WithCancel(fs.ctx)
		f = newFeed(rand.Text()[:10], cancel)
		if fs.ctx.Err() != nil {
			cancel()
			f.finish(errClosed)
			return f, func() {}
		}
		fs.byKey[key] = f
		started := f
		fs.wg.Go(func() {
			started.run(ctx, open)
			// A settled feed stays for followers that are about to arrive; a failed one does not.
			if started.state().hasSettled() {
				<-ctx.Done()
			}
			cancel()
			fs.remove(key, started)
		})
	}
	f.followers++
	return f, sync.OnceFunc(func() { fs.leave(key, f) })
}

// leave removes a follower from a feed. A feed without followers ends after linger.
func (fs *Feeds) leave(key string, f *feed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.followers--; f.followers > 0 || fs.ctx.Err() != nil {
		return
	}
	fs.wg.Go(func() {
		select {
		case <-time.After(linger):
		case <-fs.ctx.Done():
		}
		fs.mu.Lock()
		defer fs.mu.Unlock()
		if f.followers == 0 {
			f.cancel()
			fs.removeLocked(key, f)
		}
	})
}

func (fs *Feeds) remove(key string, f *feed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.removeLocked(key, f)
}

func (fs *Feeds) removeLocked(key string, f *feed) {
	if fs.byKey[key] == f {
		delete(fs.byKey, key)
	}
}

// Renew makes the next Load of a view read its source again. Existing followers keep their feed.
func (fs *Feeds) Renew(key string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.byKey, key)
}

// Load returns the content of a view and its version. Following the view from that version misses no update.
func (fs *Feeds) Load(ctx context.Context, key string, open Opener) (*Content, string, error) {
	f, release := fs.follow(key, open)
	defer release()
	for {
		s := f.state()
		switch {
		case s.content != nil:
			return s.content, s.version, nil
		case s.err != nil:
			return nil, "", s.err
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil, "", context.Cause(ctx)
		}
	}
}

// Follow calls send with each update of a view since a version, as JSON, until ctx is cancelled, send fails or the view
// fails. It returns nil once the content is final.
func (fs *Feeds) Follow(ctx context.Context, key string, open Opener, version string, send func(update []byte) error) error {
	f, release := fs.follow(key, open)
	defer release()
	for number := f.numberOf(version); ; {
		s := f.state()
		if s.number != number {
			text, now, err := f.since(number)
			if err != nil {
				return err
			}
			number = now
			if text != nil {
				if err := send(text); err != nil {
					return err
				}
			}
			continue
		}
		switch {
		case s.hasSettled():
			return nil
		case s.err != nil:
			return s.err
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
