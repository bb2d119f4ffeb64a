package secrets

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/secrets/vault"
	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// as returns the context of a call by a caller with a role.
func as(t *testing.T, name, role string) context.Context {
	return auth.With(t.Context(), &auth.Principal{Name: name, Role: v1.ParseRole(role), Kind: auth.KindToken})
}

func newVault(t *testing.T) *vault.Vault {
	t.Helper()
	return vault.New(storetest.Open(t, "mem://"), filepath.Join(t.TempDir(), "key"), time.Now)
}

func TestServiceSetsListsAndDeletes(t *testing.T) {
	t.Parallel()
	s := Service{Vault: newVault(t)}
	ctx := as(t, "ann", v1.RoleOperator)
	for _, name := range []string{"b", "a", "c"} {
		if got := servicetest.Do(t, ctx, s.SetSecret, &v1.SetSecretRequest{Name: name, Value: []byte("value")}).GetSecret(); got.GetRole() != v1.RoleOperator || got.GetSetBy() != "ann" || got.GetVersion() != 1 {
			t.Errorf("it is %v", got)
		}
	}
	var names []string
	for _, page := range servicetest.Pages(t, ctx, s.ListSecrets, &v1.ListSecretsRequest{PageSize: 2}) {
		for _, one := range page.GetItems() {
			names = append(names, one.GetName())
		}
	}
	if got := strings.Join(names, " "); got != "a b c" {
		t.Errorf("listed %s", got)
	}
	servicetest.Do(t, ctx, s.DeleteSecret, &v1.DeleteSecretRequest{Name: "b"})
	servicetest.Refused(t, ctx, s.DeleteSecret, &v1.DeleteSecretRequest{Name: "b"}, connect.CodeNotFound)
}

// TestBrokenSecretsHideNoOther checks that the list and other secrets survive a record that cannot be decoded, and that no key is
// made while such a record may have one.
func TestBrokenSecretsHideNoOther(t *testing.T) {
	t.Parallel()
	kept, file := storetest.Open(t, "mem://"), filepath.Join(t.TempDir(), "key")
	s := Service{Vault: vault.New(kept, file, time.Now)}
	ctx := as(t, "ann", v1.RoleOperator)
	breakOne := func(name string, content string) {
		t.Helper()
		if err := kept.Put(ctx, storekey.Secret(name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	breakOne("garbled", "\xff\xff")
	servicetest.Refused(t, ctx, s.SetSecret, &v1.SetSecretRequest{Name: "a", Value: []byte("value")}, connect.CodeFailedPrecondition, "secret garbled")
	if err := kept.Put(ctx, storekey.Secret("garbled"), nil); err != nil {
		t.Fatal(err)
	}
	first := Service{Vault: vault.New(storetest.Open(t, "mem://"), file, time.Now)} // makes the key
	servicetest.Do(t, ctx, first.SetSecret, &v1.SetSecretRequest{Name: "a", Value: []byte("value")})
	servicetest.Do(t, ctx, s.SetSecret, &v1.SetSecretRequest{Name: "a", Value: []byte("value")})
	breakOne("garbled", "\xff\xff")
	breakOne("empty", "")
	res := servicetest.Do(t, ctx, s.ListSecrets, &v1.ListSecretsRequest{})
	if len(res.GetItems()) != 1 || res.GetItems()[0].GetName() != "a" || len(res.GetWarnings()) != 2 {
		t.Errorf("listed %v", res)
	}
}

func TestUnknownSecretSuggestsTheNearestName(t *testing.T) {
	t.Parallel()
	s := Service{Vault: newVault(t)}
	ctx := as(t, "ann", v1.RoleOperator)
	servicetest.Do(t, ctx, s.SetSecret, &v1.SetSecretRequest{Name: "db-password", Value: []byte("value")})
	servicetest.Refused(t, ctx, s.DeleteSecret, &v1.DeleteSecretRequest{Name: "db-pasword"}, connect.CodeNotFound, "db-password")
}

func TestOperatorCannotSetAdminSecrets(t *testing.T) {
	t.Parallel()
	s := Service{Vault: newVault(t)}
	req := &v1.SetSecretRequest{Name: "a", Value: []byte("value"), Role: v1.RoleAdmin}
	if _, err := s.SetSecret(as(t, "ann", v1.RoleOperator), connect.NewRequest(req)); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("an operator: %v", err)
	}
	if _, err := s.SetSecret(as(t, "root", v1.RoleAdmin), connect.NewRequest(req)); err != nil {
		t.Errorf("an admin: %v", err)
	}
}

func TestGatewayWithoutVaultSaysSo(t *testing.T) {
	t.Parallel()
	servicetest.Refused(t, as(t, "ann", v1.RoleOperator), Service{}.ListSecrets, &v1.ListSecretsRequest{}, connect.CodeAborted, "--secrets-key")
}
