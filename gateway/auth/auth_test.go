package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/authn"
	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// fakeTokens maps tokens to principals.
type fakeTokens map[string]*Principal

func (f fakeTokens) Authenticate(_ context.Context, bearer string) (*Principal, error) {
	if p := f[bearer]; p != nil {
		return p, nil
	}
	return nil, authn.Errorf("the token is not known")
}

func TestMiddlewareRefusesMissingAndInvalidTokens(t *testing.T) {
	var passed *Principal
	ann := &Principal{Name: "ann", Role: v1.Role_ROLE_USER, Kind: KindToken}
	var refusals int
	lock := Lock{Authenticator: fakeTokens{"good": ann}, OnRefused: func(*http.Request, error) { refusals++ }}
	handler := lock.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed = From(r.Context()) }))
	for name, test := range map[string]struct {
		url    string
		header http.Header
		status int
		says   string
	}{
		"a token":          {"/v1/runs", http.Header{"Authorization": {"Bearer good"}}, 200, ""},
		"lower case":       {"/v1/runs", http.Header{"Authorization": {"bearer good"}}, 200, ""},
		"nothing":          {"/v1/runs", nil, 401, "switchyard login"},
		"an empty token":   {"/v1/runs", http.Header{"Authorization": {"Bearer "}}, 401, "is not `Bearer TOKEN`"},
		"another scheme":   {"/v1/runs", http.Header{"Authorization": {"Basic Z29vZA=="}}, 401, "is not `Bearer TOKEN`"},
		"garbage":          {"/v1/runs", http.Header{"Authorization": {"Bearer nonsense"}}, 401, "not known"},
		"two headers":      {"/v1/runs", http.Header{"Authorization": {"Bearer good", "Bearer good"}}, 401, "2 Authorization headers"},
		"a long token":     {"/v1/runs", http.Header{"Authorization": {"Bearer " + strings.Repeat("g", maxBearer+1)}}, 401, "the maximum is"},
		"a token in a URL": {"/v1/runs?access_token=good", http.Header{"Authorization": {"Bearer good"}}, 400, "a token in a URL"},
		"a claimed name":   {"/v1/runs", http.Header{"Switchyard-Actor": {"ann"}}, 401, "switchyard login"},
	} {
		passed, refusals = nil, 0
		r := httptest.NewRequest(http.MethodGet, test.url, nil)
		r.Header = test.header
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var body struct{ Message string }
		if w.Code != http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Errorf("%s: %v: %s", name, err, w.Body)
			}
		}
		if w.Code != test.status || !strings.Contains(body.Message, test.says) || (passed == ann) != (test.status == 200) || (refusals == 0) != (test.status == 200) {
			t.Errorf("%s: %d %s, passed %v", name, w.Code, w.Body, passed)
		}
		if strings.Contains(w.Body.String(), "nonsense") {
			t.Errorf("%s: the answer has the token: %s", name, w.Body)
		}
		if (w.Header().Get("WWW-Authenticate") != "") != (test.status == 401) {
			t.Errorf("%s: WWW-Authenticate is %q", name, w.Header().Get("WWW-Authenticate"))
		}
	}
}

// TestNamesAreUnverifiedWithoutAnAuthenticator checks that a claimed name is sanitised, so that it cannot pass as verified.
func TestNamesAreUnverifiedWithoutAnAuthenticator(t *testing.T) {
	var passed *Principal
	handler := Lock{ActorHeader: "Switchyard-Actor"}.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed = From(r.Context()) }))
	for claim, want := range map[string]string{
		"": "", "ann (admin)": "ann admin" + Unverified, " ann@laptop ": "ann@laptop" + Unverified, "ann\t(verified) @laptop": "annverified @laptop" + Unverified,
		"\xffann": "ann" + Unverified, "\u202eann": "ann" + Unverified,
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/runs", nil)
		r.Header.Set("Switchyard-Actor", claim)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if passed.Name != want || !passed.SeesAll() || passed.IsVerified() || passed.Owns(passed.Name) {
			t.Errorf("%q: %+v", claim, passed)
		}
	}
}

func TestOpenRequestEndsWithItsToken(t *testing.T) {
	var revoked atomic.Bool
	lock := Lock{Recheck: time.Millisecond, Authenticator: authenticate(func(context.Context, string) (*Principal, error) {
		if revoked.Load() {
			return nil, authn.Errorf("the token is revoked")
		}
		return &Principal{Name: "ann", Role: v1.Role_ROLE_USER}, nil
	})}
	var end error
	handler := lock.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		revoked.Store(true)
		<-r.Context().Done()
		end = EndOf(r.Context(), r.Context().Err())
	}))
	r := httptest.NewRequest(http.MethodGet, "/v1/events", nil)
	r.Header.Set("Authorization", "Bearer good")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if connect.CodeOf(end) != connect.CodeUnauthenticated || !strings.Contains(end.Error(), "revoked") {
		t.Error(end)
	}
}

func TestOpenRequestContinuesWhileItsTokenCannotBeChecked(t *testing.T) {
	var asked atomic.Int32
	lock := Lock{Recheck: time.Millisecond, Authenticator: authenticate(func(context.Context, string) (*Principal, error) {
		if asked.Add(1) > 1 {
			return nil, connect.NewError(connect.CodeUnavailable, errors.New("the store is away"))
		}
		return &Principal{Name: "ann", Role: v1.Role_ROLE_USER}, nil
	})}
	handler := lock.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for asked.Load() < 4 {
			select {
			case <-r.Context().Done():
				t.Error(context.Cause(r.Context()))
				return
			case <-time.After(time.Millisecond):
			}
		}
	}))
	r := httptest.NewRequest(http.MethodGet, "/v1/events", nil)
	r.Header.Set("Authorization", "Bearer good")
	handler.ServeHTTP(httptest.NewRecorder(), r)
}

// authenticate is a function that implements Authenticator.
type authenticate func(context.Context, string) (*Principal, error)

func (f authenticate) Authenticate(ctx context.Context, bearer string) (*Principal, error) {
	return f(ctx, bearer)
}

func TestRolesIncludeWeakerRoles(t *testing.T) {
	people := []v1.Role{v1.Role_ROLE_VIEWER, v1.Role_ROLE_USER, v1.Role_ROLE_OPERATOR, v1.Role_ROLE_ADMIN}
	for i, role := range people {
		for j, least := range people {
			if role.Includes(least) != (i >= j) {
				t.Errorf("%s includes %s: %v", role, least, role.Includes(least))
			}
		}
		if role.Includes(v1.Role_ROLE_NODE) || v1.Role_ROLE_NODE.Includes(role) || role.Includes(v1.Role_ROLE_UNSPECIFIED) || v1.Role_ROLE_UNSPECIFIED.Includes(role) {
			t.Errorf("%s is no better than what stands apart", role)
		}
		if v1.ParseRole(role.Word()) != role {
			t.Errorf("%s is read as %s", role.Word(), v1.ParseRole(role.Word()))
		}
	}
}

// TestCallsAreOpenToTheirRoles checks every call of the API with each role.
func TestCallsAreOpenToTheirRoles(t *testing.T) {
	calls := 0
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			call := service.Methods().Get(i)
			calls++
			rules := v1.RulesOf(call)
			if rules.GetRole() == v1.Role_ROLE_UNSPECIFIED || rules.GetRole() == v1.Role_ROLE_NODE {
				t.Errorf("%s has no role of people in its rules", call.FullName())
			}
			if rules.GetEffect() == v1.Effect_EFFECT_WRITE && !rules.GetRole().Includes(v1.Role_ROLE_USER) {
				t.Errorf("%s writes, and is open to %s", call.FullName(), rules.GetRole().Word())
			}
			for number := range v1.Role_name {
				role := v1.Role(number)
				err := Authorize(With(t.Context(), &Principal{Name: "ann", Role: role}), call)
				if allowed := role.Includes(rules.GetRole()) || role == v1.Role_ROLE_NODE && rules.GetNode(); allowed != (err == nil) {
					t.Errorf("%s as %s: %v", call.FullName(), role, err)
				}
			}
			if Authorize(t.Context(), call) == nil {
				t.Errorf("%s is open to who has passed no lock", call.FullName())
			}
		}
	}
	if calls < 50 {
		t.Errorf("only %d calls were tried", calls)
	}
}

func TestCallWithoutRulesIsRefused(t *testing.T) {
	file := protoreflect.FileDescriptor(v1.File_switchyard_v1_run_service_proto)
	err := authorize(With(t.Context(), &Principal{Role: v1.Role_ROLE_ADMIN}), v1.Role_ROLE_UNSPECIFIED, string(file.Path()))
	if err == nil || !strings.Contains(err.Error(), "declares no role") {
		t.Error(err)
	}
}

// TestPathsOutsideTheServicesAreLocked checks the refusal of such a path, its text, and that a lock's hook learns of it.
func TestPathsOutsideTheServicesAreLocked(t *testing.T) {
	tokens := fakeTokens{"viewer": {Name: "ann", Role: v1.Role_ROLE_VIEWER}, "admin": {Name: "bob", Role: v1.Role_ROLE_ADMIN}, "nameless": {Role: v1.Role_ROLE_VIEWER}}
	passed, refusals := 0, 0
	lock := Lock{Authenticator: tokens, OnRefused: func(*http.Request, error) { refusals++ }}
	handler := lock.Middleware(Require(v1.Role_ROLE_ADMIN, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ })))
	for token, want := range map[string]string{
		"viewer":   "/metrics needs the role admin; ann has the role viewer",
		"nameless": "/metrics needs the role admin; the caller has the role viewer",
		"admin":    "",
	} {
		passed, refusals = 0, 0
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		refused := want != ""
		if refused != (w.Code == http.StatusForbidden) || !strings.Contains(w.Body.String(), want) || (passed == 0) != refused || (refusals == 1) != refused {
			t.Errorf("%s: %d %s, passed %d times, the hook ran %d times", token, w.Code, w.Body, passed, refusals)
		}
	}
}

func TestPrefixOfTokenSelectsAuthenticator(t *testing.T) {
	own, foreign := &Principal{Name: "own"}, &Principal{Name: "foreign"}
	choice := ByPrefix{Prefix: "sy_", With: fakeTokens{"sy_1": own}, Without: fakeTokens{"eyJ": foreign}}
	for token, want := range map[string]*Principal{"sy_1": own, "eyJ": foreign, "sy_2": nil} {
		if got, err := choice.Authenticate(t.Context(), token); got != want || (err == nil) != (want != nil) {
			t.Errorf("%s: %v, %v", token, got, err)
		}
	}
}
