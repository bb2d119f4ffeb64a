package tokens

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// clock is a clock that tests advance.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func gatewayOn(t *testing.T, dir string, c *clock) (*Registry, *Authenticator) {
	t.Helper()
	registry := NewRegistry(storetest.Open(t, dir), c.now)
	a := NewAuthenticator(registry, slog.New(slog.DiscardHandler))
	t.Cleanup(a.Close)
	return registry, a
}

// issue creates a token without an end.
func issue(t *testing.T, registry *Registry, token *v1.Token) (secret string, created *v1.Token) {
	t.Helper()
	secret, created, err := registry.Create(t.Context(), token, 0)
	if err != nil {
		t.Fatal(err)
	}
	return secret, created
}

func TestTokenAuthenticatesItsOwner(t *testing.T) {
	c := newClock()
	registry, a := gatewayOn(t, t.TempDir(), c)
	secret, created, err := registry.Create(t.Context(), &v1.Token{Name: "ann", Role: v1.RoleOperator, CreatedBy: "root"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Authenticate(t.Context(), secret)
	if err != nil || p.Name != "ann" || p.Role != v1.Role_ROLE_OPERATOR || p.Kind != auth.KindToken || p.ID != created.GetId() || !p.ExpiresAt.Equal(c.now().Add(time.Hour)) {
		t.Errorf("%+v, %v", p, err)
	}
	for name, bearer := range map[string]string{
		"nothing": "", "garbage": "nonsense", "another secret": join(created.GetId(), newText(secretBytes)),
		"an unknown id": join(newText(idBytes), strings.Split(secret, "_")[2]), "a path": "sy_../x_y", "no secret": "sy_" + created.GetId() + "_",
		"half a secret": secret[:len(secret)-1], "more than it": secret + "a",
	} {
		_, err := a.Authenticate(t.Context(), bearer)
		if connect.CodeOf(err) != connect.CodeUnauthenticated || !strings.Contains(err.Error(), "not known") || strings.Contains(err.Error(), "ann") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.add(time.Hour)
	if _, err := a.Authenticate(t.Context(), secret); connect.CodeOf(err) != connect.CodeUnauthenticated || !strings.Contains(err.Error(), "expired at 2026-11-25T10:00:00Z") {
		t.Error(err)
	}
}

// TestRevocationHoldsAtAllGateways revokes a token at one gateway after another gateway has accepted it.
func TestRevocationHoldsAtAllGateways(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	registry, _ := gatewayOn(t, dir, c)
	_, other := gatewayOn(t, dir, c)
	secret, created := issue(t, registry, &v1.Token{Name: "ann", Role: v1.RoleUser})
	if _, err := other.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Revoke(t.Context(), created.GetId(), "root"); err != nil {
		t.Fatal(err)
	}
	c.add(freshFor)
	if _, err := other.Authenticate(t.Context(), secret); connect.CodeOf(err) != connect.CodeUnauthenticated || !strings.Contains(err.Error(), "was revoked") {
		t.Error(err)
	}
	if freshFor+auth.DefaultRecheck >= time.Second {
		t.Errorf("a stream of a revoked token may last for %v", freshFor+auth.DefaultRecheck)
	}
	if _, err := registry.Revoke(t.Context(), created.GetId(), "root"); connect.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "by root") {
		t.Errorf("revoked twice: %v", err)
	}
}

func TestTokenIsRefusedWhileTheStoreIsUnavailable(t *testing.T) {
	c, dir := newClock(), filepath.Join(t.TempDir(), "store")
	registry, a := gatewayOn(t, dir, c)
	secret, created := issue(t, registry, &v1.Token{Name: "ann", Role: v1.RoleUser})
	// A symbolic link to itself makes the record unreadable.
	path := filepath.Join(dir, filepath.FromSlash(storekey.Token(created.GetId())))
	if err := errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(t.Context(), secret); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Error(err)
	}
}

// TestBrokenTokensHideNoOther checks that the list survives records and uses that hold something else, nothing, or cannot be read,
// and that tokens can still be revoked.
func TestBrokenTokensHideNoOther(t *testing.T) {
	c, dir := newClock(), filepath.Join(t.TempDir(), "store")
	registry, _ := gatewayOn(t, dir, c)
	_, whole := issue(t, registry, &v1.Token{Name: "ann", Role: v1.RoleUser})
	for id, content := range map[string]string{"garbled": "\xff\xff", "empty": "", "other": ""} {
		if err := registry.store.Put(t.Context(), storekey.Token(id), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, filepath.FromSlash(storekey.Token("other")))
	if err := errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path), registry.store.Put(t.Context(), storekey.TokenUse(whole.GetId()), []byte("yesterday"))); err != nil {
		t.Fatal(err)
	}
	all, warnings, err := registry.List(t.Context())
	if err != nil || len(all) != 1 || all[0].GetName() != "ann" {
		t.Errorf("%v, %v", all, err)
	}
	said := strings.Join(warnings, "\n")
	for _, want := range []string{"token garbled", "token empty", "token other", "last use of token " + whole.GetId()} {
		if !strings.Contains(said, want) {
			t.Errorf("the warnings do not name %s: %s", want, said)
		}
	}
	if _, err := registry.Revoke(t.Context(), "ann", "root"); err != nil {
		t.Error(err)
	}
}

// TestOnlyOneGatewayCreatesTheFirstToken creates the first token from four gateways.
func TestOnlyOneGatewayCreatesTheFirstToken(t *testing.T) {
	dir := t.TempDir()
	var secrets []string
	for range 4 {
		registry, _ := gatewayOn(t, dir, newClock())
		secret, err := registry.CreateFirst(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if secret != "" {
			secrets = append(secrets, secret)
		}
	}
	if len(secrets) != 1 {
		t.Fatalf("%d first tokens", len(secrets))
	}
	registry, a := gatewayOn(t, dir, newClock())
	if has, err := registry.HasFirst(t.Context()); err != nil || !has {
		t.Errorf("%v, %v", has, err)
	}
	if p, err := a.Authenticate(t.Context(), secrets[0]); err != nil || p.Role != v1.Role_ROLE_ADMIN {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := registry.Revoke(t.Context(), firstID, "root"); connect.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "last active admin token") {
		t.Error(err)
	}
	issue(t, registry, &v1.Token{Name: "ann", Role: v1.RoleAdmin})
	if _, err := registry.Revoke(t.Context(), firstID, "ann"); err != nil {
		t.Error(err)
	}
	if has, err := registry.HasFirst(t.Context()); err != nil || !has {
		t.Errorf("once revoked, another first token would be made: %v, %v", has, err)
	}
}

func TestStoreHasNoSecret(t *testing.T) {
	dir := t.TempDir()
	registry, a := gatewayOn(t, dir, newClock())
	secret, _ := issue(t, registry, &v1.Token{Name: "ann", Role: v1.RoleUser})
	if _, err := a.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	a.Close()
	part, files := secret[strings.LastIndexByte(secret, '_')+1:], 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), part) {
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil || files < 2 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestLastUseIsRecorded(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	registry, a := gatewayOn(t, dir, c)
	secret, _ := issue(t, registry, &v1.Token{Name: "ann", Role: v1.RoleUser})
	used := func() time.Time {
		t.Helper()
		a.Close() // waits for pending uses
		all, _, err := registry.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all[0].GetLastUsedAt().AsTime()
	}
	if at := used(); at.Unix() != 0 {
		t.Errorf("it was used at %v before it was", at)
	}
	began := c.now()
	for range 3 {
		if _, err := a.Authenticate(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		c.add(time.Second)
	}
	if at := used(); !at.Equal(began) {
		t.Errorf("it was used at %v, not %v", at, began)
	}
	c.add(useInterval)
	if _, err := a.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if at := used(); !at.Equal(c.now()) {
		t.Errorf("it was used at %v, not %v", at, c.now())
	}
}

func TestRevokeFindsOneToken(t *testing.T) {
	registry, _ := gatewayOn(t, t.TempDir(), newClock())
	for range 2 {
		issue(t, registry, &v1.Token{Name: "ann", Role: v1.RoleUser})
	}
	issue(t, registry, &v1.Token{Name: "bob", Role: v1.RoleUser})
	if revoked, err := registry.Revoke(t.Context(), "bob", "root"); err != nil || revoked.GetState() != v1.TokenRevoked || revoked.GetRevokedBy() != "root" {
		t.Errorf("%v, %v", revoked, err)
	}
	if _, err := registry.Revoke(t.Context(), "ann", "root"); connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "2 active tokens") {
		t.Error(err)
	}
	whole := join("abc", "hunter2")
	if _, err := registry.Revoke(t.Context(), whole, "root"); connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "abc") || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	if _, err := registry.Revoke(t.Context(), "eve", "root"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Error(err)
	}
}

func TestServiceValidatesRequests(t *testing.T) {
	registry, _ := gatewayOn(t, t.TempDir(), newClock())
	ctx := auth.With(t.Context(), &auth.Principal{Name: "root", Role: v1.Role_ROLE_ADMIN, Kind: auth.KindToken})
	for name, test := range map[string]struct {
		service Service
		req     *v1.CreateTokenRequest
		code    connect.Code
		says    string
		expires bool
	}{
		"a person":              {Service{Registry: registry}, &v1.CreateTokenRequest{Name: "ann", Role: v1.RoleUser}, 0, "", true},
		"without end":           {Service{Registry: registry}, &v1.CreateTokenRequest{Name: "ann", Role: v1.RoleUser, NeverExpires: true}, 0, "", false},
		"a node":                {Service{Registry: registry}, &v1.CreateTokenRequest{Name: "gpu-1", Role: v1.RoleNode, Node: "gpu-1"}, 0, "", false},
		"a node without one":    {Service{Registry: registry}, &v1.CreateTokenRequest{Name: "gpu-1", Role: v1.RoleNode}, connect.CodeInvalidArgument, "needs a node", false},
		"a person with a node":  {Service{Registry: registry}, &v1.CreateTokenRequest{Name: "ann", Role: v1.RoleUser, Node: "gpu-1"}, connect.CodeInvalidArgument, "cannot be bound to a node", false},
		"a node outside":        {Service{Registry: registry}, &v1.CreateTokenRequest{Name: "gpu-1", Role: v1.RoleNode, Node: "../gpu-1"}, connect.CodeInvalidArgument, "is not the name of a node", false},
		"the name of schedules": {Service{Registry: registry}, &v1.CreateTokenRequest{Name: "schedule", Role: v1.RoleOperator}, connect.CodeInvalidArgument, "is reserved", false},
		"both ends":             {Service{Registry: registry}, &v1.CreateTokenRequest{Name: "ann", Role: v1.RoleUser, NeverExpires: true, ExpiresIn: durationpb.New(time.Hour)}, connect.CodeInvalidArgument, "mutually exclusive; remove one", false},
		"authentication off":    {Service{}, &v1.CreateTokenRequest{Name: "ann", Role: v1.RoleUser}, connect.CodeAborted, "--auth tokens", false},
	} {
		res, err := test.service.CreateToken(ctx, connect.NewRequest(test.req))
		if err != nil || test.code != 0 {
			if connect.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if (res.Msg.GetToken().GetExpiresAt() != nil) != test.expires || res.Msg.GetToken().GetCreatedBy() != "root" || !strings.HasPrefix(res.Msg.GetSecret(), Prefix) {
			t.Errorf("%s: %v", name, res.Msg)
		}
	}
	var names []string
	for _, page := range servicetest.Pages(t, ctx, Service{Registry: registry}.ListTokens, &v1.ListTokensRequest{PageSize: 2}) {
		for _, token := range page.GetItems() {
			names = append(names, token.GetName())
		}
	}
	if strings.Join(names, " ") != "ann ann gpu-1" {
		t.Errorf("%v", names)
	}
	who, err := Service{}.WhoAmI(ctx, connect.NewRequest(&v1.WhoAmIRequest{}))
	if err != nil || who.Msg.GetName() != "root" || who.Msg.GetRole() != v1.RoleAdmin || who.Msg.GetKind() != auth.KindToken {
		t.Errorf("%v, %v", who, err)
	}
}

// TestCancelledCallerDoesNotCancelASharedLookup checks that a caller that leaves does not cancel the look-up for others.
func TestCancelledCallerDoesNotCancelASharedLookup(t *testing.T) {
	registry, a := gatewayOn(t, t.TempDir(), newClock())
	secret, _ := issue(t, registry, &v1.Token{Name: "ann", Role: v1.RoleUser})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = a.Authenticate(gone, secret) // the result does not matter
	if _, err := a.Authenticate(t.Context(), secret); err != nil {
		t.Error(err)
	}
}
