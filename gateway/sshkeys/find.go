package sshkeys

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// find returns the record of a key that the caller may remove: the record of the given name, the caller's own, or the only
// one. Records that the caller may not change count as not found.
func (s Service) find(ctx context.Context, sum [sha256.Size]byte, name string) (*v1.Key, error) {
	of, _, err := s.Registry.list(ctx, storekey.KeysOf(sum))
	if err != nil {
		return nil, err
	}
	caller := auth.From(ctx)
	of = slices.DeleteFunc(of, func(k *v1.Key) bool { return !mayChange(caller, k) || name != "" && k.GetName() != name })
	if at := slices.IndexFunc(of, func(k *v1.Key) bool { return k.GetName() == caller.Name }); at >= 0 {
		return of[at], nil
	}
	switch len(of) {
	case 0:
		return nil, rpcerror.NotFound("there is no key %s%s; `switchyard keys list` lists your keys", FingerprintPrefix, base64.RawStdEncoding.EncodeToString(sum[:]))
	case 1:
		return of[0], nil
	}
	var names []string
	for _, k := range of {
		names = append(names, k.GetName())
	}
	return nil, rpcerror.Invalid("%d names have this key: %s; name one (--name)", len(of), strings.Join(names, ", "))
}
