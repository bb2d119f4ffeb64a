package export

import (
	"context"
	"crypto/subtle"
	"errors"

	"connectrpc.com/connect"

	"switchyard/activities/secrets/vault"
	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// secretKind gives access to the secrets.
type secretKind struct{ vault *vault.Vault }

func (k secretKind) enabled() error {
	if k.vault == nil {
		return rpcerror.WrongState("this gateway stores no secrets because it has no key file; start it with --secrets-key FILE, or leave the secrets out")
	}
	return nil
}

func (k secretKind) list(ctx context.Context) (names, warnings []string, err error) {
	all, warnings, err := k.vault.List(ctx)
	for _, s := range all {
		names = append(names, s.GetName())
	}
	return sorted(names), warnings, err
}

func secretItem(name string, s *v1.ExportedSecret) *v1.ExportedItem {
	return &v1.ExportedItem{Kind: v1.ExportSecret, Name: name, Content: &v1.ExportedItem_Secret{Secret: s}}
}

func (k secretKind) find(ctx context.Context, like *v1.ExportedItem) (*v1.ExportedItem, error) {
	found, err := k.vault.Get(ctx, like.GetName())
	if errors.Is(err, vault.ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return secretItem(found.GetName(), &v1.ExportedSecret{Role: found.GetRole()}), nil
}

func (k secretKind) check(_ context.Context, item *v1.ExportedItem) (*v1.ExportedItem, []string, error) {
	s := item.GetSecret()
	if err := vault.Check(item.GetName(), s.GetValue(), s.GetRole()); err != nil {
		return nil, nil, rpcerror.Invalid("%w", err)
	}
	return secretItem(item.GetName(), &v1.ExportedSecret{Role: s.GetRole(), Value: s.GetValue()}), nil, nil
}

func (k secretKind) isSame(ctx context.Context, item, stored *v1.ExportedItem) (bool, error) {
	value, _, err := k.vault.Open(ctx, item.GetName())
	return stored.GetSecret().GetRole() == item.GetSecret().GetRole() && subtle.ConstantTimeCompare(value, item.GetSecret().GetValue()) == 1, keyFault(err)
}

func (k secretKind) put(ctx context.Context, item, _ *v1.ExportedItem) error {
	_, err := k.vault.Set(ctx, item.GetName(), item.GetSecret().GetValue(), item.GetSecret().GetRole(), auth.From(ctx).Name)
	return keyFault(err)
}

// keyFault returns an error of the vault with the code that clients receive.
func keyFault(err error) error {
	if errors.Is(err, vault.ErrKey) {
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return err
}
