package vault

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	v1 "switchyard/proto/switchyard/v1"
)

func set(t *testing.T, v *Vault, name, value string) *v1.Secret {
	t.Helper()
	s, err := v.Set(t.Context(), name, []byte(value), v1.RoleOperator, "ann")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSecretComesBackAndIsNotInTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, file := filepath.Join(dir, "store"), filepath.Join(dir, "keys", "secrets-key")
	s := storetest.Open(t, folder)
	v := New(s, file, time.Now)
	const value = "hunter2-is-not-a-password"
	first := set(t, v, "db.password", value)
	if first.GetVersion() != 1 || first.GetRole() != v1.RoleOperator || first.GetSetBy() != "ann" || first.GetSetAt() == nil || first.GetKeyId() == "" {
		t.Errorf("it is %v", first)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v, %v", info.Mode(), err)
	}
	// Test names that differ only in case or look like temporary files.
	set(t, v, "DB.password", "upper")
	set(t, v, "a.tmp", "temporary")
	set(t, v, "a__0x2f__", "escaped")
	for name, want := range map[string]string{"db.password": value, "DB.password": "upper", "a.tmp": "temporary", "a__0x2f__": "escaped"} {
		got, known, err := New(s, file, time.Now).Open(t.Context(), name)
		if err != nil || string(got) != want || known.GetName() != name {
			t.Errorf("%s is %q, %v, %v", name, got, known, err)
		}
	}
	all, _, err := v.List(t.Context())
	if err != nil || len(all) != 4 || all[0].GetName() != "DB.password" {
		t.Errorf("the list is %v, %v", all, err)
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(value)) || bytes.Contains(text, []byte("temporary")) {
			t.Errorf("%s has a value", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestVersionsGrowOverDeletion(t *testing.T) {
	t.Parallel()
	v := New(storetest.Open(t, "mem://"), filepath.Join(t.TempDir(), "key"), time.Now)
	set(t, v, "a", "one")
	if s := set(t, v, "a", "two"); s.GetVersion() != 2 {
		t.Errorf("version %d", s.GetVersion())
	}
	if _, err := v.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Open(t.Context(), "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a deleted secret: %v", err)
	}
	if _, err := v.Delete(t.Context(), "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a second deletion: %v", err)
	}
	if all, _, err := v.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the list is %v, %v", all, err)
	}
	if s := set(t, v, "a", "three"); s.GetVersion() != 3 {
		t.Errorf("version %d", s.GetVersion())
	}
}

func TestWrongKeyNamesItsIdAndTheFlag(t *testing.T) {
	t.Parallel()
	s, dir := storetest.Open(t, "mem://"), t.TempDir()
	first := set(t, New(s, filepath.Join(dir, "one"), time.Now), "a", "value")
	missing := New(s, filepath.Join(dir, "two"), time.Now)
	if _, _, err := missing.Open(t.Context(), "a"); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "--secrets-key") || !strings.Contains(err.Error(), first.GetKeyId()) {
		t.Errorf("without a key: %v", err)
	}
	// With a new key of its own, a gateway could open only its own secrets.
	if _, err := missing.Set(t.Context(), "b", []byte("value"), v1.RoleUser, ""); !errors.Is(err, ErrKey) {
		t.Errorf("a second key: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "two")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key was made: %v", err)
	}
	set(t, New(storetest.Open(t, "mem://"), filepath.Join(dir, "two"), time.Now), "other", "value")
	other := New(s, filepath.Join(dir, "two"), time.Now)
	if _, _, err := other.Open(t.Context(), "a"); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "another key (id "+first.GetKeyId()+")") || !strings.Contains(err.Error(), "--secrets-key") {
		t.Errorf("with another key: %v", err)
	}
	// The only secret may be set again, because its key is lost.
	if again := set(t, other, "a", "new"); again.GetVersion() != 2 || again.GetKeyId() == first.GetKeyId() {
		t.Errorf("it is %v", again)
	}
}

func TestKeyFileThatOthersCanReadIsRefused(t *testing.T) {
	t.Parallel()
	s, file := storetest.Open(t, "mem://"), filepath.Join(t.TempDir(), "key")
	set(t, New(s, file, time.Now), "a", "value")
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	v := New(s, file, time.Now)
	if _, _, err := v.Open(t.Context(), "a"); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "0640") {
		t.Errorf("open: %v", err)
	}
	if _, err := v.Set(t.Context(), "a", []byte("x"), v1.RoleUser, ""); !errors.Is(err, ErrKey) {
		t.Errorf("set: %v", err)
	}
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Open(t.Context(), "a"); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "contains no key") {
		t.Errorf("a file with text: %v", err)
	}
}

// TestChangedRecordDoesNotOpen moves a value to another name and lowers its role, as an attacker with write access to
// the store could.
func TestChangedRecordDoesNotOpen(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	v := New(s, filepath.Join(t.TempDir(), "key"), time.Now)
	set(t, v, "a", "value")
	for what, change := range map[string]func(*v1.SecretRecord){
		"place":   func(*v1.SecretRecord) {},
		"name":    func(r *v1.SecretRecord) { r.Secret.Name = "b" },
		"role":    func(r *v1.SecretRecord) { r.Secret.Role = v1.RoleUser },
		"version": func(r *v1.SecretRecord) { r.Secret.Version++ },
		"value":   func(r *v1.SecretRecord) { r.Sealed[len(r.Sealed)-1] ^= 1 },
		"length":  func(r *v1.SecretRecord) { r.Sealed = r.Sealed[:5] },
	} {
		var record v1.SecretRecord
		if err := s.GetMessage(t.Context(), storekey.Secret("a"), &record); err != nil {
			t.Fatal(err)
		}
		change(&record)
		to := "a"
		if what == "place" || what == "name" {
			to = "b"
		}
		if err := s.PutMessage(t.Context(), storekey.Secret(to), &record); err != nil {
			t.Fatal(err)
		}
		if value, _, err := v.Open(t.Context(), to); !errors.Is(err, errForged) {
			t.Errorf("with another %s it is %q, %v", what, value, err)
		}
		set(t, v, "a", "value")
	}
}

func TestBadSecretsAreRefused(t *testing.T) {
	t.Parallel()
	v := New(storetest.Open(t, "mem://"), filepath.Join(t.TempDir(), "key"), time.Now)
	for _, test := range []struct{ name, value, role string }{
		{"", "x", v1.RoleUser}, {"a/b", "x", v1.RoleUser}, {"../a", "x", v1.RoleUser}, {".a", "x", v1.RoleUser}, {strings.Repeat("a", 64), "x", v1.RoleUser},
		{"a", "", v1.RoleUser}, {"a", strings.Repeat("x", MaxValueBytes+1), v1.RoleUser},
		{"a", "x", v1.RoleViewer}, {"a", "x", v1.RoleNode}, {"a", "x", ""},
	} {
		if _, err := v.Set(t.Context(), test.name, []byte(test.value), test.role, ""); !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "xxx") {
			t.Errorf("%.20q with %d bytes and role %q: %.200v", test.name, len(test.value), test.role, err)
		}
	}
	set(t, v, strings.Repeat("a", 63), strings.Repeat("x", MaxValueBytes))
}

// TestVaultsThatStartTogetherHaveOneKey sets the first secrets through several vaults concurrently.
func TestVaultsThatStartTogetherHaveOneKey(t *testing.T) {
	t.Parallel()
	s, file := storetest.Open(t, "mem://"), filepath.Join(t.TempDir(), "key")
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			made, err := New(s, file, time.Now).Set(t.Context(), "s"+string(rune('a'+i)), []byte("value"), v1.RoleUser, "")
			if err != nil {
				t.Error(err)
			}
			ids[i] = made.GetKeyId()
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Errorf("keys %v", ids)
		}
	}
}
