package sshkeys

import (
	"context"
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/crypto/ssh"

	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

func newService(t *testing.T) Service {
	t.Helper()
	return Service{NewRegistry(storetest.Open(t, t.TempDir()), time.Now)}
}

func newKey(t *testing.T) (ssh.PublicKey, string) {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " of \x1b[2Jme"
}

func as(t *testing.T, name string, role v1.Role) context.Context {
	return auth.With(t.Context(), &auth.Principal{Name: name, Role: role, Kind: auth.KindToken})
}

func (s Service) add(ctx context.Context, line string) (*v1.Key, error) {
	res, err := s.AddKey(ctx, connect.NewRequest(&v1.AddKeyRequest{PublicKey: line}))
	if err != nil {
		return nil, err
	}
	return res.Msg.GetKey(), nil
}

func (s Service) names(t *testing.T, ctx context.Context) string {
	t.Helper()
	var all []string
	for _, page := range servicetest.Pages(t, ctx, s.ListKeys, &v1.ListKeysRequest{PageSize: 1}) {
		for _, k := range page.GetItems() {
			all = append(all, k.GetName())
		}
	}
	return strings.Join(all, " ")
}

func (s Service) remove(ctx context.Context, fingerprint, name string) error {
	_, err := s.RemoveKey(ctx, connect.NewRequest(&v1.RemoveKeyRequest{Fingerprint: fingerprint, Name: name}))
	return err
}

func TestUsersManageTheirKeysAndAdminsAllKeys(t *testing.T) {
	s := newService(t)
	key, line := newKey(t)
	ann, bob, root := as(t, "ann", v1.Role_ROLE_USER), as(t, "bob", v1.Role_ROLE_OPERATOR), as(t, "root", v1.Role_ROLE_ADMIN)
	added, err := s.add(ann, line[:len(line)-len(" of \x1b[2Jme")]+" me@laptop")
	if err != nil || added.GetFingerprint() != ssh.FingerprintSHA256(key) || added.GetComment() != "me@laptop" || added.GetRole() != v1.RoleUser || added.GetCreatedAt() == nil {
		t.Fatalf("%v, %v", added, err)
	}
	if _, err := s.add(bob, "# a comment\n"+line[:len(line)-len(" of \x1b[2Jme")]); err != nil { // bob adds the key of ann
		t.Fatal(err)
	}
	if got := s.names(t, ann) + "|" + s.names(t, bob) + "|" + s.names(t, root); got != "ann|bob|ann bob" {
		t.Error(got)
	}
	of, err := s.Registry.Of(t.Context(), key)
	if err != nil || len(of) != 2 {
		t.Errorf("%v, %v", of, err)
	}
	if err := s.remove(root, added.GetFingerprint(), ""); connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "ann, bob") {
		t.Error(err)
	}
	if err := s.remove(ann, added.GetFingerprint(), "bob"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Error(err)
	}
	// The fingerprint in URL-safe base64 without its prefix, as a path has it.
	if err := s.remove(root, strings.NewReplacer("/", "_", "+", "-").Replace(strings.TrimPrefix(added.GetFingerprint(), FingerprintPrefix)), "bob"); err != nil {
		t.Error(err)
	}
	if has, err := s.Registry.Has(t.Context(), added); !has || err != nil {
		t.Error(has, err)
	}
	if err := s.remove(ann, added.GetFingerprint(), ""); err != nil {
		t.Error(err)
	}
	if has, err := s.Registry.Has(t.Context(), added); has || err != nil {
		t.Error(has, err)
	}
	if err := s.remove(ann, added.GetFingerprint(), ""); connect.CodeOf(err) != connect.CodeNotFound {
		t.Error(err)
	}
	if got := s.names(t, root); got != "" {
		t.Error(got)
	}
	if _, err := s.add(ann, line[:len(line)-len(" of \x1b[2Jme")]); err != nil || s.names(t, ann) != "ann" {
		t.Error(err)
	}
	if err := s.remove(ann, "nonsense\x1b", ""); connect.CodeOf(err) != connect.CodeInvalidArgument || strings.Contains(err.Error(), "\x1b") {
		t.Error(err)
	}
}

// TestBrokenKeysHideNoOther checks that a record that cannot be decoded hides no other key, neither from lists nor from logins, and
// that only those who see all keys learn of it.
func TestBrokenKeysHideNoOther(t *testing.T) {
	s := newService(t)
	key, line := newKey(t)
	ann, root := as(t, "ann", v1.Role_ROLE_USER), as(t, "root", v1.Role_ROLE_ADMIN)
	if _, err := s.add(ann, line[:len(line)-len(" of \x1b[2Jme")]); err != nil {
		t.Fatal(err)
	}
	sum, _ := parseFingerprint(ssh.FingerprintSHA256(key))
	for name, content := range map[string]string{"bob": "\xff\xff", "eve": ""} {
		if err := s.Registry.store.Put(t.Context(), storekey.Key(sum, name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for caller, warnings := range map[context.Context]int{ann: 0, root: 2} {
		res, err := s.ListKeys(caller, connect.NewRequest(&v1.ListKeysRequest{}))
		if err != nil || len(res.Msg.GetItems()) != 1 || len(res.Msg.GetWarnings()) != warnings {
			t.Errorf("%v, %v; want %d warnings", res, err, warnings)
		}
	}
	if of, err := s.Registry.Of(t.Context(), key); err != nil || len(of) != 1 || of[0].GetName() != "ann" {
		t.Errorf("%v, %v", of, err)
	}
}

func TestInvalidPublicKeysAreRefused(t *testing.T) {
	s := newService(t)
	_, one := newKey(t)
	_, other := newKey(t)
	for text, says := range map[string]string{
		"hunter2": "not a public key", one: "control character", strings.ReplaceAll(one+"\n"+other, "\x1b", ""): "2 keys",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2": "private key", "ssh-dss AAAAB3NzaC1kc3M= hunter2": "no longer secure",
	} {
		_, err := s.add(as(t, "ann", v1.Role_ROLE_USER), text)
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
