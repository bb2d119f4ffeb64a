package export

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"switchyard/gateway/sshkeys"
	v1 "switchyard/proto/switchyard/v1"
)

// keyKind gives access to the SSH keys of people.
type keyKind struct {
	registry *sshkeys.Registry
	// locked is set if authentication is on.
	locked bool
}

func (k keyKind) enabled() error { return nil }

func (k keyKind) list(ctx context.Context) (names, warnings []string, err error) {
	all, warnings, err := k.registry.List(ctx)
	for _, one := range all {
		names = append(names, keyItem(one).GetName())
	}
	return sorted(names), warnings, err
}

func keyItem(k *v1.Key) *v1.ExportedItem {
	return &v1.ExportedItem{Kind: v1.ExportKey, Name: k.GetName() + "/" + k.GetFingerprint(), Content: &v1.ExportedItem_Key{Key: k}}
}

func (k keyKind) find(ctx context.Context, like *v1.ExportedItem) (*v1.ExportedItem, error) {
	at := strings.LastIndex(like.GetName(), "/"+sshkeys.FingerprintPrefix)
	if at < 0 {
		return nil, nil
	}
	found, err := k.registry.Find(ctx, like.GetName()[:at], like.GetName()[at+1:])
	if err != nil || found == nil {
		return nil, err
	}
	return keyItem(found), nil
}

func (k keyKind) check(_ context.Context, item *v1.ExportedItem) (*v1.ExportedItem, []string, error) {
	return keyItem(item.GetKey()), nil, sshkeys.CheckRecord(item.GetKey(), k.locked)
}

func (k keyKind) isSame(_ context.Context, item, stored *v1.ExportedItem) (bool, error) {
	return proto.Equal(item, stored), nil
}

func (k keyKind) put(ctx context.Context, item, _ *v1.ExportedItem) error {
	return k.registry.Restore(ctx, item.GetKey())
}
