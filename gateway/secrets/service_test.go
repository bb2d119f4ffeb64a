package secrets

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/secrets/vault"
	"switchyard/activities/store/storetest"
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
		res, err := s.SetSecret(ctx, connect.NewRequest(&v1.SetSecretRequest{Name: name, Value: []byte("value")}))
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Msg.GetSecret(); got.GetRole() != v1.RoleOperator || got.GetSetBy() != "ann" || got.GetVersion() != 1 {
			t.Errorf("it is %v", got)
		}
	}
	var names []string
	req := &v1.ListSecretsRequest{PageSize: 2}
	for {
		page, err := s.ListSecrets(ctx, connect.NewRequest(req))
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.Msg.GetItems() {
			names = append(names, one.GetName())
		}
		if req.PageToken = page.Msg.GetNextPageToken(); req.PageToken == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "a b c" {
		t.Errorf("listed %s", got)
	}
	if _, err := s.DeleteSecret(ctx, connect.NewRequest(&v1.DeleteSecretRequest{Name: "b"})); err != nil {
		t.Error(err)
	}
	if _, err := s.DeleteSecret(ctx, connect.NewRequest(&v1.DeleteSecretRequest{Name: "b"})); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a second deletion: %v", err)
	}
}

func TestUnknownSecretSuggestsTheNearestName(t *testing.T) {
	t.Parallel()
	s := Service{Vault: newVault(t)}
	ctx := as(t, "ann", v1.RoleOperator)
	if _, err := s.SetSecret(ctx, connect.NewRequest(&v1.SetSecretRequest{Name: "db-password", Value: []byte("value")})); err != nil {
		t.Fatal(err)
	}
	_, err := s.DeleteSecret(ctx, connect.NewRequest(&v1.DeleteSecretRequest{Name: "db-pasword"}))
	if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "db-password") {
		t.Errorf("%v", err)
	}
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
	_, err := Service{}.ListSecrets(as(t, "ann", v1.RoleOperator), connect.NewRequest(&v1.ListSecretsRequest{}))
	if connect.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "--secrets-key") {
		t.Errorf("%v", err)
	}
}
