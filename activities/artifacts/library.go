package artifacts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// sweepPause is the wait for a sweep that is about to end.
const sweepPause = 200 * time.Millisecond

// Library saves and loads artifacts. It is safe for concurrent use.
type Library struct {
	Store *store.Store
	// Cache keeps chunks on this machine, or is nil.
	Cache *Cache
	// Retry repeats a call of the store until it succeeds or fails for good. If it is nil, each call is made once.
	Retry func(ctx context.Context, call func() error) error
	// Keep is how long what Save stores is kept at least, or 0 if it is kept as long as the other values of its run.
	Keep time.Duration
	// Progress is called whenever a chunk was stored or written. It may be nil.
	Progress func()
}

func (l *Library) progress() {
	if l.Progress != nil {
		l.Progress()
	}
}

// retry calls the store, and waits for the end of a sweep.
func (l *Library) retry(ctx context.Context, call func() error) error {
	for {
		var swept error
		once := func() error {
			err := call()
			if swept = nil; errors.Is(err, store.ErrSweeping) {
				swept, err = err, nil
			}
			return err
		}
		err := once()
		if err != nil && l.Retry != nil {
			err = l.Retry(ctx, once)
		}
		if swept == nil {
			return err
		}
		select {
		case <-time.After(sweepPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// findAtOnce is the number of chunks that Adopt looks for at once.
const findAtOnce = 1000

// Adopt copies the manifest of an artifact to another key, of storekey.Artifact or storekey.Source, so that the artifact lives as
// long as the run with the key. A value that the key has stays. The error is store.ErrNotFound if the artifact, or a part of it,
// was removed, or if it has expired.
func (l *Library) Adopt(ctx context.Context, a *v1.Artifact, key string) (*v1.Artifact, error) {
	m := &v1.ArtifactManifest{}
	if err := l.Store.GetMessage(ctx, a.GetManifest(), m); err != nil {
		return nil, err
	}
	if HasExpired(m.GetArtifact(), time.Now()) {
		return nil, fmt.Errorf("artifact %s has expired: %w", a.GetName(), store.ErrNotFound)
	}
	value, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	if _, err := l.Store.PutIfAbsent(ctx, key, value); err != nil {
		return nil, err
	}
	// As after a draft, what is found stays.
	for digests := range slices.Chunk(m.GetChunks(), findAtOnce) {
		var stored []bool
		if err := l.retry(ctx, func() (err error) { stored, err = l.Store.FindChunks(ctx, digests); return err }); err != nil {
			return nil, err
		}
		if slices.Contains(stored, false) {
			return nil, fmt.Errorf("artifact %s: %w", a.GetName(), store.ErrNotFound)
		}
	}
	adopted := proto.CloneOf(a)
	adopted.Manifest = key
	return adopted, nil
}

// HasExpired reports whether the files of an artifact may be removed, if its run has ended.
func HasExpired(a *v1.Artifact, now time.Time) bool {
	return a.GetExpiresAt() != nil && !now.Before(a.GetExpiresAt().AsTime())
}

// Used yields the digests of the chunks that manifests and drafts in a store refer to. Drafts of a run, and artifacts that have expired
// by now, count only if isOpen reports that the run may still continue.
func Used(ctx context.Context, s *store.Store, now time.Time, isOpen func(ctx context.Context, run string) (bool, error), yield func(digest []byte)) error {
	for key, err := range s.Keys(ctx, storekey.SourcesPrefix) {
		if err != nil {
			return err
		}
		list, err := readChunks(ctx, s, key)
		if err != nil {
			return err
		}
		for _, digest := range list.GetChunks() {
			yield(digest)
		}
	}
	for run, err := range s.Runs(ctx) {
		if err != nil {
			return err
		}
		if err := usedBy(ctx, s, run, now, isOpen, yield); err != nil {
			return err
		}
	}
	return nil
}

// usedBy yields the digests that the manifests and drafts of a run refer to.
func usedBy(ctx context.Context, s *store.Store, run string, now time.Time, isOpen func(ctx context.Context, run string) (bool, error), yield func(digest []byte)) error {
	var open, asked bool
	for key, err := range s.Keys(ctx, storekey.RunPrefix(run)) {
		if err != nil {
			return err
		}
		node, err := storekey.ParseNode(key)
		if isSource := key == storekey.Source(run); err != nil && !isSource || err == nil && node.Kind != storekey.ArtifactValue && node.Kind != storekey.DraftValue {
			continue
		}
		if asked && !open && node.Kind == storekey.DraftValue {
			continue
		}
		list, err := readChunks(ctx, s, key)
		if err != nil {
			return err
		}
		if m, isManifest := list.(*v1.ArtifactManifest); !isManifest || HasExpired(m.GetArtifact(), now) {
			if !asked {
				if open, err = isOpen(ctx, run); err != nil {
					return err
				}
				asked = true
			}
			if !open {
				continue
			}
		}
		for _, digest := range list.GetChunks() {
			yield(digest)
		}
	}
	return nil
}

// chunkList is an ArtifactManifest or an ArtifactDraft.
type chunkList interface {
	proto.Message
	GetChunks() [][]byte
}

// readChunks returns the manifest or draft under a key, which is empty if it was removed meanwhile.
func readChunks(ctx context.Context, s *store.Store, key string) (chunkList, error) {
	var list chunkList = &v1.ArtifactManifest{}
	if node, err := storekey.ParseNode(key); err == nil && node.Kind == storekey.DraftValue {
		list = &v1.ArtifactDraft{}
	} else if _, isDraft := storekey.ParseSource(key); isDraft {
		list = &v1.ArtifactDraft{}
	}
	err := s.GetMessage(ctx, key, list)
	if errors.Is(err, store.ErrNotFound) {
		return list, nil
	}
	return list, err
}
