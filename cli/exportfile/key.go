package exportfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// ErrPassphrase means that a pass phrase is not the one of a file.
var ErrPassphrase = errors.New("the pass phrase is not the one that the file was sealed with")

// Key opens the secrets of a file.
type Key struct{ identity *age.X25519Identity }

// NewKey returns a new, random key.
func NewKey() (Key, error) {
	identity, err := age.GenerateX25519Identity()
	return Key{identity}, err
}

// Recipient returns the public part of the key, for which a gateway seals secrets.
func (k Key) Recipient() string { return k.identity.Recipient().String() }

// Seal returns the key sealed with a pass phrase.
func (k Key) Seal(passphrase string) (string, error) {
	recipient, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return "", err
	}
	var sealed strings.Builder
	lines := armor.NewWriter(&sealed)
	w, err := age.Encrypt(lines, recipient)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(w, k.identity.String())
	err = errors.Join(err, w.Close(), lines.Close())
	return sealed.String(), err
}

// OpenKey returns the key that Seal has sealed, or ErrPassphrase.
func OpenKey(sealed, passphrase string) (Key, error) {
	identity, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return Key{}, err
	}
	text, err := open(sealed, identity)
	if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
		return Key{}, ErrPassphrase
	}
	if err != nil {
		return Key{}, fmt.Errorf("the key of the secrets is damaged: %w", err)
	}
	opened, err := age.ParseX25519Identity(string(text))
	if err != nil {
		return Key{}, fmt.Errorf("the key of the secrets is damaged: %w", err)
	}
	return Key{opened}, nil
}

// OpenSecret replaces the sealed value of a secret by the value.
func (k Key) OpenSecret(item *v1.ExportedItem) error {
	text, err := open(item.GetSecret().GetSealed(), k.identity)
	if err != nil {
		return fmt.Errorf("open secret %s: %w", item.GetName(), err)
	}
	whole := &v1.ExportedItem{}
	if err := proto.Unmarshal(text, whole); err != nil {
		return fmt.Errorf("open secret %s: %w", item.GetName(), err)
	}
	if whole.GetName() != item.GetName() || whole.GetSecret().GetRole() != item.GetSecret().GetRole() {
		return fmt.Errorf("secret %s of role %s has the value of %s of role %s; a person has changed the file", item.GetName(), item.GetSecret().GetRole(), whole.GetName(), whole.GetSecret().GetRole())
	}
	item.GetSecret().Sealed, item.GetSecret().Value = "", whole.GetSecret().GetValue()
	return nil
}

// open decrypts an armored text.
func open(sealed string, identity age.Identity) ([]byte, error) {
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader([]byte(sealed))), identity)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
