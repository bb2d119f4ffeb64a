package artifacts

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// batchChunks is the number of chunks that are looked for in the store at once.
	batchChunks = 6
	// buffers is the number of chunks of an upload that are in memory: those of two batches, and the one that is being filled.
	buffers = 2*batchChunks + 1
	// forgetTimeout bounds how long an upload that has failed clears its drafts.
	forgetTimeout = 5 * time.Second
	// putsAtOnce is the number of chunks of an upload that are stored concurrently.
	putsAtOnce = 4
)

// upload stores the chunks of one artifact while the caller reads more. Only one goroutine may call its methods.
type upload struct {
	ctx     context.Context
	library *Library
	key     string
	group   *errgroup.Group
	stop    context.CancelFunc
	// free has the buffers of chunks that are not in use, and encoded a buffer for each chunk that may be stored now.
	free, encoded chan []byte

	batch  [][]byte
	sizes  []int32
	size   int64 // of all chunks
	drafts int
	proves bool

	mu      sync.Mutex
	digests [][]byte
	proofs  [][]byte        // of the chunks, if the upload is a source
	known   map[string]bool // chunks of this upload that are stored
}

func (l *Library) newUpload(ctx context.Context, key string) *upload {
	ctx, stop := context.WithCancel(ctx)
	u := &upload{library: l, key: key, stop: stop, free: make(chan []byte, buffers), encoded: make(chan []byte, putsAtOnce), known: map[string]bool{}}
	u.group, u.ctx = errgroup.WithContext(ctx)
	for range buffers {
		u.free <- nil
	}
	for range putsAtOnce {
		u.encoded <- nil
	}
	return u
}

// chunkBuffers has the buffers of uploads that have ended, so that many small artifacts do not allocate one each.
var chunkBuffers = sync.Pool{New: func() any { b := make([]byte, 0, newChunk); return &b }}

// abort ends the upload.
func (u *upload) abort() {
	u.stop()
	_ = u.group.Wait()
	for len(u.free) > 0 {
		if b := <-u.free; b != nil {
			chunkBuffers.Put(&b)
		}
	}
}

// forget ends the upload, and lets a sweep remove what it has stored.
func (u *upload) forget(ctx context.Context) {
	u.abort()
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	for n := range u.drafts {
		if u.library.Store.PutMessage(ctx, storekey.Draft(u.key, n), &v1.ArtifactDraft{}) != nil {
			return // a sweep removes it after the end of the run
		}
	}
}

// buffer returns an empty buffer for a chunk. It waits until one is free.
func (u *upload) buffer() ([]byte, error) {
	select {
	case b := <-u.free:
		if b == nil {
			b = *chunkBuffers.Get().(*[]byte)
		}
		return b[:0], nil
	case <-u.ctx.Done():
		if err := u.group.Wait(); err != nil {
			return nil, err
		}
		return nil, u.ctx.Err()
	}
}

// put takes a buffer back.
func (u *upload) put(b []byte) {
	if b != nil {
		u.free <- b
	}
}

// add appends a chunk. The upload takes over its buffer.
func (u *upload) add(chunk []byte) {
	u.sizes, u.size = append(u.sizes, int32(len(chunk))), u.size+int64(len(chunk))
	if u.batch = append(u.batch, chunk); len(u.batch) == batchChunks {
		u.send()
	}
}

// send begins to store the chunks of the batch.
func (u *upload) send() {
	batch, n, size := u.batch, u.drafts, u.size
	if len(batch) == 0 {
		return
	}
	u.batch, u.drafts = nil, u.drafts+1
	u.mu.Lock()
	first := len(u.digests)
	u.digests = append(u.digests, make([][]byte, len(batch))...)
	if u.proves {
		u.proofs = append(u.proofs, make([][]byte, len(batch))...)
	}
	u.mu.Unlock()
	u.group.Go(func() error {
		defer func() {
			for _, chunk := range batch {
				u.put(chunk)
			}
		}()
		return u.store(batch, first, n, size)
	})
}

// store stores the chunks of a batch that are not stored yet. first is the number of its first chunk, n that of its draft, and size
// that of the upload so far.
func (u *upload) store(batch [][]byte, first, n int, size int64) error {
	digests, proofs := make([][]byte, len(batch)), make([][]byte, len(batch))
	var hashing errgroup.Group
	hashing.SetLimit(2)
	for i, chunk := range batch {
		hashing.Go(func() error {
			if digests[i] = digestOf(chunk); u.proves {
				proofs[i] = proofOf(chunk)
			}
			return nil
		})
	}
	_ = hashing.Wait()
	u.mu.Lock()
	copy(u.digests[first:], digests)
	if u.proves {
		copy(u.proofs[first:], proofs)
	}
	u.mu.Unlock()
	s, retry := u.library.Store, u.library.retry
	if err := retry(u.ctx, func() error {
		return s.PutMessage(u.ctx, storekey.Draft(u.key, n), &v1.ArtifactDraft{Chunks: digests, Size: size})
	}); err != nil {
		return err
	}
	var stored []bool
	if err := retry(u.ctx, func() (err error) { stored, err = s.FindChunks(u.ctx, digests); return err }); err != nil {
		return err
	}
	puts, ctx := errgroup.WithContext(u.ctx)
	for i, chunk := range batch {
		if stored[i] || u.isKnown(digests[i]) {
			continue
		}
		puts.Go(func() error {
			value := <-u.encoded
			defer func() { u.encoded <- value }()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			key := storekey.Chunk(digests[i])
			value = encodeChunk(chunk, value)
			err := retry(ctx, func() error { return s.Put(ctx, key, value) })
			u.library.progress()
			return err
		})
	}
	return puts.Wait()
}

// isKnown reports whether the upload is already storing a chunk, and records that it does.
func (u *upload) isKnown(digest []byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := u.known[string(digest)]
	u.known[string(digest)] = true
	return known
}

// wait waits until everything is stored. It returns the digests and the sizes of the chunks in order.
func (u *upload) wait() (digests [][]byte, sizes []int32, err error) {
	u.send()
	if err := u.group.Wait(); err != nil {
		return nil, nil, err
	}
	return u.digests, u.sizes, nil
}
