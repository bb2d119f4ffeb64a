package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"switchyard/activities/store/storekey"
)

// ErrSweeping is in the chain of the error of FindChunks while chunks that it asks for are being removed. The call succeeds
// shortly afterwards.
var ErrSweeping = errors.New("unused chunks are being removed")

// condemnedKey has the digests of the chunks that are being removed. Nodes cannot read it.
const condemnedKey = storekey.ChunksPrefix + "condemned"

// FindChunks reports which chunks of artifacts are stored. The caller relies on the answer: it must have stored the digests
// before, in an ArtifactDraft of its run.
func (s *Store) FindChunks(ctx context.Context, digests [][]byte) (stored []bool, err error) {
	if stored, err = s.backend.findChunks(ctx, digests); err != nil {
		return nil, fmt.Errorf("look for chunks: %w", err)
	}
	return stored, nil
}

// findChunks looks for chunks in a store that this process reads directly.
func findChunks(ctx context.Context, b backend, digests [][]byte, exists func(key string) (bool, error)) (stored []bool, err error) {
	condemned, err := readCondemned(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, digest := range digests {
		if len(digest) != sha256.Size {
			return nil, fmt.Errorf("%x is not the digest of a chunk", digest)
		}
		if condemned[[sha256.Size]byte(digest)] {
			return nil, ErrSweeping
		}
	}
	stored = make([]bool, len(digests))
	for i, digest := range digests {
		if stored[i], err = exists(storekey.Chunk(digest)); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// readCondemned returns the digests of the chunks that are being removed.
func readCondemned(ctx context.Context, b backend) (map[[sha256.Size]byte]bool, error) {
	list, err := b.get(ctx, condemnedKey)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	condemned := map[[sha256.Size]byte]bool{}
	for digest := range slices.Chunk(list, sha256.Size) {
		if len(digest) == sha256.Size {
			condemned[[sha256.Size]byte(digest)] = true
		}
	}
	return condemned, err
}

// SweepChunks removes the chunks that nothing refers to, and returns how many. used calls yield for each digest that is referred
// to, and may name it several times. SweepChunks calls it twice: the second call sees what was stored meanwhile.
//
//	uploader:  store draft ──▶ FindChunks ──▶ rely on what is stored
//	sweeper:   list chunks ──▶ used ──▶ store condemned ──▶ used ──▶ delete ──▶ delete condemned
//
// Whatever the order of the two, either the second used sees the draft, or FindChunks sees the condemned. An interrupted sweep
// is completed by the next one. A gateway does not support it.
func (s *Store) SweepChunks(ctx context.Context, used func(ctx context.Context, yield func(digest []byte)) error) (removed int, err error) {
	unused, err := s.condemn(ctx, used)
	if err != nil || len(unused) == 0 {
		return 0, err
	}
	if err := used(ctx, func(digest []byte) { delete(unused, [sha256.Size]byte(digest)) }); err != nil {
		return 0, err
	}
	for digest := range unused {
		if err := s.Delete(ctx, storekey.Chunk(digest[:])); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, s.Delete(ctx, condemnedKey)
}

// condemn returns the digests of the chunks that are to be removed unless something refers to them meanwhile.
func (s *Store) condemn(ctx context.Context, used func(ctx context.Context, yield func(digest []byte)) error) (map[[sha256.Size]byte]bool, error) {
	unused, err := readCondemned(ctx, s.backend) // of a sweep that was interrupted
	if err != nil || len(unused) > 0 {
		return unused, err
	}
	unused = map[[sha256.Size]byte]bool{}
	for key, err := range s.Keys(ctx, storekey.ChunksPrefix) {
		if err != nil {
			return nil, err
		}
		if digest, ok := storekey.ParseChunk(key); ok {
			unused[[sha256.Size]byte(digest)] = true
		}
	}
	if len(unused) == 0 {
		return nil, nil
	}
	if err := used(ctx, func(digest []byte) { delete(unused, [sha256.Size]byte(digest)) }); err != nil || len(unused) == 0 {
		return nil, err
	}
	var list bytes.Buffer
	for digest := range unused {
		list.Write(digest[:])
	}
	return unused, s.Put(ctx, condemnedKey, list.Bytes())
}
