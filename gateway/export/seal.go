package export

import (
	"bytes"
	"context"
	"errors"

	"filippo.io/age"
	"filippo.io/age/armor"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/secrets/vault"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// sealer seals secrets for a recipient.
type sealer struct{ recipient age.Recipient }

// newSealer returns the sealer for a recipient in the text form of age, or nil for an empty one.
func newSealer(recipient string) (*sealer, error) {
	if recipient == "" {
		return nil, nil
	}
	to, err := age.ParseX25519Recipient(recipient)
	if err != nil {
		return nil, rpcerror.Invalid("the recipient is not a public key of age such as age1...: %w", err)
	}
	return &sealer{to}, nil
}

// addValue adds the sealed value to a secret. The name and the role are sealed with the value, so that none of them can be
// exchanged for that of another secret.
func (s *sealer) addValue(ctx context.Context, v *vault.Vault, item *v1.ExportedItem) error {
	value, stored, err := v.Open(ctx, item.GetName())
	if err != nil {
		return err
	}
	item.GetSecret().Role = stored.GetRole()
	whole := proto.CloneOf(item)
	whole.GetSecret().Value = value
	text, err := proto.Marshal(whole)
	if err != nil {
		return err
	}
	var sealed bytes.Buffer
	lines := armor.NewWriter(&sealed)
	w, err := age.Encrypt(lines, s.recipient)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close(), lines.Close()); err != nil {
		return err
	}
	item.GetSecret().Sealed = sealed.String()
	return nil
}
