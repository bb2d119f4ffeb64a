package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// ArtifactQuotaError is the error of a Put of a manifest or draft that would bring the artifacts of a run above their quota.
type ArtifactQuotaError struct{ Text string }

// Error returns the text for people, with the quota, the usage and the remedy.
func (e *ArtifactQuotaError) Error() string { return e.Text }

// isArtifactQuota reports whether an error means that a run has used up its quota of artifacts.
func isArtifactQuota(err error) bool {
	_, is := errors.AsType[*ArtifactQuotaError](err)
	return is
}

// LimitArtifacts bounds the artifacts of each run, in bytes of their files. Contents that others have stored, too, count. 0 means no
// limit. LimitArtifacts applies like LimitLogs, and must be called before the first use of the Store, WithSpool and ClaimFor.
func (s *Store) LimitArtifacts(bytes int64) {
	if b, ok := s.backend.(sizer); ok && bytes > 0 {
		s.backend = &artifactQuota{sizer: b, limit: bytes, byHome: map[string]*artifactUsage{}}
	}
}

// artifactQuota is a backend that refuses artifacts beyond limit bytes per run: their manifests, and the drafts of an upload once
// the upload is too large.
type artifactQuota struct {
	sizer
	limit int64

	mu     sync.Mutex
	byHome map[string]*artifactUsage
}

// artifactUsage has the sizes of the artifacts of a run.
type artifactUsage struct {
	mu    sync.Mutex
	sizes map[string]int64 // by the key of the manifest; nil until they have been counted
	total int64
	// added is what this process has stored since the last count.
	added int64
}

func (q *artifactQuota) put(ctx context.Context, key string, value []byte) error {
	settle, err := q.reserve(ctx, key, value)
	if err != nil {
		return err
	}
	err = q.sizer.put(ctx, key, value)
	settle(err == nil)
	return err
}

func (q *artifactQuota) putIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error) {
	settle, err := q.reserve(ctx, key, value)
	if err != nil {
		return false, err
	}
	existed, err = q.sizer.putIfAbsent(ctx, key, value)
	settle(err == nil)
	return existed, err
}

// reserve adds a manifest to the usage of its run, and checks a draft, or returns an ArtifactQuotaError. The caller must call settle
// with whether the value was stored; if not, settle takes the reservation back.
func (q *artifactQuota) reserve(ctx context.Context, key string, value []byte) (settle func(stored bool), err error) {
	settle = func(bool) {}
	of, err := storekey.ParseNode(key)
	if err != nil {
		return settle, nil
	}
	var size int64
	switch of.Kind {
	case storekey.ArtifactValue:
		size, err = manifestSize(value)
	case storekey.DraftValue:
		d := &v1.ArtifactDraft{}
		err = proto.Unmarshal(value, d)
		size = d.GetSize()
	}
	if err != nil || size <= 0 {
		return settle, err
	}
	home := of.Run + "/" + of.Chain
	u := q.usage(home)
	u.mu.Lock()
	defer u.mu.Unlock()
	isOver := func() bool { return u.total-u.sizes[key]+size > q.limit }
	if u.sizes == nil || u.added >= q.limit/recountShare || isOver() { // other processes store artifacts of the run, too
		if err := q.recount(ctx, u, home); err != nil {
			return nil, err
		}
	}
	if isOver() {
		return nil, &ArtifactQuotaError{fmt.Sprintf("the quota of the artifacts of a run is %s (--artifact-quota-gb of the gateway): those of this run have %s, and this one has %s or more; leave fewer files, or raise the quota",
			gib(q.limit), gib(u.total-u.sizes[key]), gib(size))}
	}
	if of.Kind == storekey.DraftValue {
		return settle, nil
	}
	before := u.sizes[key]
	u.set(key, size)
	return func(stored bool) {
		if !stored {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.set(key, before)
		}
	}, nil
}

// set sets the size of an artifact. The caller holds mu.
func (u *artifactUsage) set(key string, size int64) {
	u.added += size - u.sizes[key]
	u.total += size - u.sizes[key]
	u.sizes[key] = size
}

// gib formats a number of bytes.
func gib(bytes int64) string { return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30)) }

// manifestSize returns the size of an artifact, given its stored manifest.
func manifestSize(value []byte) (int64, error) {
	m := &v1.ArtifactManifest{}
	err := proto.Unmarshal(value, m)
	return m.GetArtifact().GetSize(), err
}

// recount adds the manifests of a run that are not known. The caller holds u.mu.
func (q *artifactQuota) recount(ctx context.Context, u *artifactUsage, home string) error {
	if u.sizes == nil {
		u.sizes = map[string]int64{}
	}
	for key, err := range q.keys(ctx, storekey.ArtifactsPrefix(home)) {
		if err != nil {
			return err
		}
		if _, isKnown := u.sizes[key]; isKnown {
			continue
		}
		value, err := q.get(ctx, key)
		if errors.Is(err, ErrNotFound) { // the run was removed meanwhile
			continue
		}
		if err != nil {
			return err
		}
		size, err := manifestSize(value)
		if err != nil {
			return err
		}
		u.set(key, size)
	}
	u.added = 0
	return nil
}

func (q *artifactQuota) deleteRun(ctx context.Context, run string) error {
	q.mu.Lock()
	for home := range q.byHome {
		if strings.HasPrefix(home, run+"/") {
			delete(q.byHome, home)
		}
	}
	q.mu.Unlock()
	return q.sizer.deleteRun(ctx, run)
}

// usage returns the usage of a run, and creates it if necessary.
func (q *artifactQuota) usage(home string) *artifactUsage {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byHome[home] == nil {
		if len(q.byHome) >= maxQuotaRuns {
			clear(q.byHome) // they are counted again
		}
		q.byHome[home] = &artifactUsage{}
	}
	return q.byHome[home]
}
