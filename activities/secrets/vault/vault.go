package vault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// MaxValueBytes is the maximum length of a secret's value.
const MaxValueBytes = 64 << 10

var nameText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })

var (
	// ErrUnknown is wrapped by errors about a secret that does not exist.
	ErrUnknown = errors.New("no such secret")
	// ErrKey is wrapped by errors about a key that is missing or is not the key of a secret.
	ErrKey = errors.New("the key of the secrets")
	// ErrInvalid is wrapped by errors about an invalid name, value or role.
	ErrInvalid = errors.New("invalid secret")
)

// Vault manages the secrets in a store. It is safe for concurrent use, and several vaults with the same key may share a
// store.
type Vault struct {
	store *store.Store
	// keyFile is the path of the key file, which may not exist yet.
	keyFile string
	now     func() time.Time

	changing sync.Mutex // held while a secret is set or deleted

	mu  sync.Mutex
	key *key // nil until it is read
}

// New returns the vault in a store. The key file is read when it is first needed, and created by the first Set.
func New(s *store.Store, keyFile string, now func() time.Time) *Vault {
	return &Vault{store: s, keyFile: keyFile, now: now}
}

// Set stores a value under a name and returns the metadata of the secret. The value is available to runs whose submitter has
// at least the given role.
func (v *Vault) Set(ctx context.Context, name string, value []byte, role, by string) (*v1.Secret, error) {
	if err := Check(name, value, role); err != nil {
		return nil, err
	}
	v.changing.Lock()
	defer v.changing.Unlock()
	k, err := v.keyFor(ctx, name)
	if err != nil {
		return nil, err
	}
	before, err := v.record(ctx, name)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return nil, err
	}
	s := &v1.Secret{Name: name, Role: role, Version: before.GetSecret().GetVersion() + 1, SetAt: timestamppb.New(v.now()), SetBy: by, KeyId: k.id}
	record := &v1.SecretRecord{Secret: s, Sealed: k.seal(value, bound(name, s))}
	if err := v.store.PutMessage(ctx, storekey.Secret(name), record); err != nil {
		return nil, fmt.Errorf("set secret %s: %w", name, err)
	}
	return s, nil
}

// Check returns an error unless Set can store a secret.
func Check(name string, value []byte, role string) error {
	switch {
	case !nameText().MatchString(name):
		return fmt.Errorf("%w: %.80q is not a valid name of a secret: at most 63 letters, digits, '.', '_' and '-'", ErrInvalid, name)
	case len(value) == 0 || len(value) > MaxValueBytes:
		return fmt.Errorf("%w: the value of %s has %d bytes; it must have 1 to %d", ErrInvalid, name, len(value), MaxValueBytes)
	case !v1.Role_ROLE_ADMIN.Includes(v1.ParseRole(role)) || role == v1.RoleViewer:
		return fmt.Errorf("%w: %q is not a role that can submit runs; use user, operator or admin", ErrInvalid, role)
	}
	return nil
}

// bound returns the data that is authenticated with the sealed value of a secret.
func bound(name string, s *v1.Secret) []byte {
	return []byte(strings.Join([]string{"switchyard secret", name, s.GetRole(), strconv.Itoa(int(s.GetVersion()))}, "\x00"))
}

// openKey returns the key and caches it. It returns fs.ErrNotExist if the key file does not exist.
func (v *Vault) openKey() (*key, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.key != nil {
		return v.key, nil
	}
	k, err := readKey(v.keyFile)
	if err == nil {
		v.key = k
	}
	return k, err
}

// keyFor returns the key for encrypting a secret. It creates a key if no other secret has one. It refuses a key that other
// secrets were not encrypted with, because then each gateway could open only some of the secrets.
func (v *Vault) keyFor(ctx context.Context, name string) (*key, error) {
	// The key file exists before the first secret that is encrypted with the key. In this order, keyFor cannot see a secret
	// without the key file.
	all, unreadable, err := v.List(ctx)
	if err != nil {
		return nil, err
	}
	k, err := v.openKey()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("encrypt secret %s: %w: %w", name, ErrKey, err)
	}
	for _, s := range all {
		if s.GetName() == name {
			continue
		}
		if err := v.checkKey(s, k); err != nil {
			return nil, err
		}
	}
	switch {
	case k != nil:
		return k, nil
	case len(unreadable) > 0:
		return nil, fmt.Errorf("%w is missing from %s, and it is unknown whether other secrets have one: %s", ErrKey, v.keyFile, strings.Join(unreadable, "; "))
	}
	if _, err := createKey(v.keyFile); err != nil {
		return nil, fmt.Errorf("encrypt secret %s: %w: %w", name, ErrKey, err)
	}
	return v.openKey()
}

// checkKey returns an error unless the secret is encrypted with k. A nil k means that the key file does not exist.
func (v *Vault) checkKey(s *v1.Secret, k *key) error {
	const remedy = "start each gateway with --secrets-key FILE and the same file, or delete the secret if that key is lost"
	switch {
	case k == nil:
		return fmt.Errorf("%w: secret %s is encrypted with the key %s, and this gateway has no %s; %s", ErrKey, s.GetName(), s.GetKeyId(), v.keyFile, remedy)
	case s.GetKeyId() != k.id:
		return fmt.Errorf("%w: secret %s is encrypted with another key (id %s) than that of %s (id %s); %s", ErrKey, s.GetName(), s.GetKeyId(), v.keyFile, k.id, remedy)
	}
	return nil
}

// record returns the record of a secret. For a deleted secret it returns the record and ErrUnknown.
func (v *Vault) record(ctx context.Context, name string) (*v1.SecretRecord, error) {
	var record v1.SecretRecord
	err := v.store.GetMessage(ctx, storekey.Secret(name), &record)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if err != nil {
		return nil, err
	}
	if record.GetDeleted() {
		return &record, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	return &record, nil
}

// Get returns the metadata of a secret.
func (v *Vault) Get(ctx context.Context, name string) (*v1.Secret, error) {
	record, err := v.record(ctx, name)
	if err != nil {
		return nil, err
	}
	return record.GetSecret(), nil
}

// Open returns the value and the metadata of a secret.
func (v *Vault) Open(ctx context.Context, name string) (value []byte, s *v1.Secret, err error) {
	record, err := v.record(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	s = record.GetSecret()
	k, err := v.openKey()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("decrypt secret %s: %w: %w", name, ErrKey, err)
	}
	if err := v.checkKey(s, k); err != nil {
		return nil, nil, err
	}
	if value, err = k.open(record.GetSealed(), bound(name, s)); err != nil {
		return nil, nil, fmt.Errorf("decrypt secret %s: %w", name, err)
	}
	return value, s, nil
}

// List returns the metadata of all secrets that can be read, ordered by name, and a warning for each of the others.
func (v *Vault) List(ctx context.Context) (all []*v1.Secret, warnings []string, err error) {
	warnings, err = v.store.ReadEach(ctx, storekey.SecretsPrefix, func(key string) error {
		var record v1.SecretRecord
		err := v.store.GetMessage(ctx, key, &record)
		switch {
		case err != nil || record.GetDeleted():
			return err
		case storekey.Secret(record.GetSecret().GetName()) != key:
			return store.Unreadable(key, "secret")
		}
		all = append(all, record.GetSecret())
		return nil
	}, func(key string, err error) string {
		return fmt.Sprintf("secret %s is left out: %v; remove this value from the store, and set the secret again", storekey.SecretName(key), err)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list secrets: %w", err)
	}
	slices.SortFunc(all, func(a, b *v1.Secret) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all, warnings, nil
}

// Delete removes the value of a secret and returns the metadata that it had.
func (v *Vault) Delete(ctx context.Context, name string) (*v1.Secret, error) {
	v.changing.Lock()
	defer v.changing.Unlock()
	record, err := v.record(ctx, name)
	if err != nil {
		return nil, err
	}
	s := record.GetSecret()
	deleted := &v1.SecretRecord{Secret: &v1.Secret{Name: name, Version: s.GetVersion()}, Deleted: true}
	if err := v.store.PutMessage(ctx, storekey.Secret(name), deleted); err != nil {
		return nil, fmt.Errorf("delete secret %s: %w", name, err)
	}
	return s, nil
}
