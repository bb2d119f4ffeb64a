package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// IdentityKey is the key of the random text that identifies a store. A gateway serves it but refuses to write it.
const IdentityKey = "identity"

// Identity returns the text that distinguishes this store from all others. It is the same for all that open the same
// store, directly or through a gateway. The first call for a store creates it.
func (s *Store) Identity(ctx context.Context) (string, error) {
	if id := s.identity.Load(); id != nil {
		return *id, nil
	}
	id, err := s.backend.ensure(ctx, IdentityKey, uuid.NewString())
	if err == nil && id == "" {
		err = fmt.Errorf("it has none")
	}
	if err != nil {
		return "", fmt.Errorf("read the identity of the store %s: %w", s.Location(), err)
	}
	s.identity.Store(&id)
	return id, nil
}

// identifyTimeout bounds one read of a store's identity, for which all current callers of Identify wait. identifyInterval is how
// long its answer counts.
const (
	identifyTimeout  = 7 * time.Second
	identifyInterval = time.Second
)

// Identify reads the identity of the store again, which shows whether the store can be reached. Several calls within
// identifyInterval read it once, so that the many nodes of a gateway cost its store little.
func (s *Store) Identify(ctx context.Context) (string, error) {
	if s.identity.Load() == nil {
		return s.Identity(ctx)
	}
	read := s.identifying.DoChan("", func() (any, error) {
		if last := s.identified.Load(); last != nil && time.Since(last.at) < identifyInterval {
			return last.id, last.err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), identifyTimeout)
		defer cancel()
		id, err := s.backend.identify(ctx)
		if err != nil {
			err = fmt.Errorf("read the identity of the store %s: %w", s.Location(), err)
		}
		s.identified.Store(&identification{time.Now(), id, err})
		return id, err
	})
	select {
	case result := <-read:
		return result.Val.(string), result.Err
	case <-ctx.Done():
		return "", fmt.Errorf("the store %s does not answer: %w", s.Location(), context.Cause(ctx))
	}
}

// identification is the answer to a read of the identity.
type identification struct {
	at  time.Time
	id  string
	err error
}

// GatewayIdentity returns the identity of the store of the gateway at a URL.
func GatewayIdentity(ctx context.Context, client *http.Client, url string) (string, error) {
	res, err := switchyardv1connect.NewBlobServiceClient(client, url).GetBlob(ctx, connect.NewRequest(&v1.GetBlobRequest{Key: IdentityKey}))
	if err != nil {
		return "", err
	}
	if len(res.Msg.GetData()) == 0 {
		return "", errors.New("it has none")
	}
	return string(res.Msg.GetData()), nil
}

func (b *bucket) identify(ctx context.Context) (string, error) {
	value, err := b.get(ctx, IdentityKey)
	return string(value), err
}

func (f *folder) identify(context.Context) (string, error) {
	if err := f.present(); err != nil {
		return "", err
	}
	value, err := os.ReadFile(f.path(IdentityKey))
	return strings.TrimSpace(string(value)), err
}

// identify tries each gateway only once, because its callers report the failure.
func (r *remote) identify(ctx context.Context) (string, error) {
	id, err := r.conn.Identify(ctx)
	if err != nil {
		return "", r.failed(err)
	}
	return id, nil
}

func (b *bucket) ensure(ctx context.Context, key, text string) (string, error) {
	if _, err := b.putIfAbsent(ctx, key, []byte(text)); err != nil {
		return "", err
	}
	value, err := b.get(ctx, key)
	return string(value), err
}

func (f *folder) ensure(_ context.Context, key, text string) (string, error) {
	if err := f.present(); err != nil {
		return "", err
	}
	path := f.path(key)
	if _, err := f.link(path, []byte(text)); err != nil {
		return "", err
	}
	value, err := os.ReadFile(path)
	return strings.TrimSpace(string(value)), err
}

// ensure returns the gateway's text.
func (r *remote) ensure(ctx context.Context, _, _ string) (string, error) { return r.identify(ctx) }
