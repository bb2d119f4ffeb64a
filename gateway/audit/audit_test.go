package audit

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/authn"
	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func open(t *testing.T, location string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// list returns all entries that a request selects, page by page.
func list(t *testing.T, s Service, req *v1.ListAuditEntriesRequest) []*v1.AuditEntry {
	t.Helper()
	var all []*v1.AuditEntry
	for {
		page, err := s.ListAuditEntries(t.Context(), connect.NewRequest(req))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Msg.GetItems()...)
		if req.PageToken = page.Msg.GetNextPageToken(); req.PageToken == "" {
			return all
		}
		if req.GetPageSize() > 0 && len(page.Msg.GetItems()) > int(req.GetPageSize()) {
			t.Fatalf("a page has %d entries", len(page.Msg.GetItems()))
		}
	}
}

// TestEntriesOfSeveralGatewaysAreListed records at two gateways at once, over several days.
func TestEntriesOfSeveralGatewaysAreListed(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	now := time.Date(2026, 11, 23, 23, 59, 0, 0, time.UTC)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(7 * time.Second)
		return now
	}
	const each = 60
	var recording sync.WaitGroup
	for gateway := range 2 {
		r := NewRecorder(open(t, dir), clock, quiet)
		defer r.Close()
		for caller := range 3 {
			recording.Go(func() {
				for k := range each / 3 {
					r.Record(t.Context(), &v1.AuditEntry{
						By: fmt.Sprintf("ann-%d", gateway), Action: "RunService/SubmitRun", Result: resultOK, Objects: map[string]string{"run": fmt.Sprintf("ci-%d-%d", caller, k)},
					})
				}
			})
		}
	}
	recording.Wait()
	s := Service{open(t, dir), func() time.Time { return now }}
	all := list(t, s, &v1.ListAuditEntriesRequest{PageSize: 7})
	if len(all) != 2*each {
		t.Fatalf("%d entries", len(all))
	}
	ids := map[string]bool{}
	for k, e := range all {
		ids[e.GetId()] = true
		if k > 0 && e.GetAt().AsTime().Truncate(24*time.Hour).After(all[k-1].GetAt().AsTime()) {
			t.Errorf("%v comes after %v", e.GetAt().AsTime(), all[k-1].GetAt().AsTime())
		}
	}
	if len(ids) != 2*each {
		t.Errorf("%d ids", len(ids))
	}
	middle := time.Date(2026, 11, 24, 0, 5, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		req  *v1.ListAuditEntriesRequest
		want int
	}{
		"who":            {&v1.ListAuditEntriesRequest{Who: "ann-1"}, each},
		"no one":         {&v1.ListAuditEntriesRequest{Who: "ann"}, 0},
		"what":           {&v1.ListAuditEntriesRequest{What: "submitrun"}, 2 * each},
		"something else": {&v1.ListAuditEntriesRequest{What: "cancel"}, 0},
		"an object":      {&v1.ListAuditEntriesRequest{Object: "ci-1-4"}, 2},
		"refused":        {&v1.ListAuditEntriesRequest{Result: resultRefused}, 0},
		"ok":             {&v1.ListAuditEntriesRequest{Result: resultOK, PageSize: 11}, 2 * each},
	} {
		if found := list(t, s, test.req); len(found) != test.want {
			t.Errorf("%s: %d entries", name, len(found))
		}
	}
	before, after := list(t, s, &v1.ListAuditEntriesRequest{Until: timestamppb.New(middle)}), list(t, s, &v1.ListAuditEntriesRequest{Since: timestamppb.New(middle), PageSize: 3})
	if len(before) == 0 || len(after) == 0 || len(before)+len(after) != 2*each {
		t.Errorf("%d before, %d after", len(before), len(after))
	}
	if _, err := s.ListAuditEntries(t.Context(), connect.NewRequest(&v1.ListAuditEntriesRequest{Result: "good"})); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Error(err)
	}
}

// TestEntriesOutlastTheStore takes the store away while calls are recorded.
func TestEntriesOutlastTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	kept := open(t, dir)
	r := NewRecorder(kept, time.Now, quiet)
	defer r.Close()
	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r.Record(t.Context(), &v1.AuditEntry{By: "ann", Action: "RunService/CancelRun", Result: resultOK})
	if waited := time.Since(began); waited < maxWait {
		t.Errorf("the call waited for %v only", waited)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	s := Service{kept, time.Now}
	for deadline := time.Now().Add(time.Minute); len(list(t, s, &v1.ListAuditEntriesRequest{})) != 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the entry is not there after the store is back")
		}
	}
}

func TestEntriesOfAClosingGatewayAreKept(t *testing.T) {
	kept := open(t, t.TempDir())
	r := NewRecorder(kept, time.Now, quiet)
	r.Note(&v1.AuditEntry{By: "ann", From: "10.0.0.1"})
	r.Close()
	r.Record(t.Context(), &v1.AuditEntry{By: "bob"})
	r.Close()
	if all := list(t, Service{kept, time.Now}, &v1.ListAuditEntriesRequest{}); len(all) != 2 {
		t.Errorf("%v", all)
	}
}

// TestFloodOfRefusalsIsCounted refuses many requests of one address, and one of another.
func TestFloodOfRefusalsIsCounted(t *testing.T) {
	kept := open(t, t.TempDir())
	now := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	r := NewRecorder(kept, func() time.Time { return now }, quiet)
	refuse := func(address string) {
		req := httptest.NewRequest("GET", "/v1/runs?access_token=sy_a_secret", nil)
		req.RemoteAddr = address
		req.Header.Set("Authorization", "Bearer sy_a_secret")
		req.Header.Set(forwardedHeader, "192.0.2.1")
		r.NoteRequest(req, authn.Errorf("the token is not known"))
	}
	for range 100 {
		refuse("10.0.0.1:1234")
	}
	refuse("10.0.0.2:1234")
	now = now.Add(time.Second)
	refuse("10.0.0.1:1235")
	r.Close()
	all := list(t, Service{kept, func() time.Time { return now }}, &v1.ListAuditEntriesRequest{Result: resultRefused})
	if len(all) != floodSecond+2 || all[0].GetOmitted() != 100-floodSecond {
		t.Errorf("%d entries: %v", len(all), all)
	}
	for _, e := range all {
		if strings.Contains(e.String(), "secret") || e.GetAction() != "GET /v1/runs" || e.GetResult() != "unauthenticated" || e.GetReason() == "" || e.GetForwardedFor() != "192.0.2.1" || strings.Contains(e.GetFrom(), ":") {
			t.Errorf("an entry is %v", e)
		}
	}
}

func TestOnlyRefusalsSayWhy(t *testing.T) {
	for err, want := range map[error]string{
		nil: "ok/", errors.New("env X is secret"): "internal/",
		connect.NewError(connect.CodeInvalidArgument, errors.New("env X is secret")):                  "invalid_argument/",
		connect.NewError(connect.CodePermissionDenied, errors.New("it needs the role admin")):         "permission_denied/it needs the role admin",
		fmt.Errorf("call: %w", connect.NewError(connect.CodeUnauthenticated, errors.New("no token"))): "unauthenticated/",
	} {
		e := &v1.AuditEntry{}
		end(e, err)
		if got := e.GetResult() + "/" + e.GetReason(); !strings.HasPrefix(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// TestObjectsOfEveryWrite finds in the rules what each call that changes something is about.
func TestObjectsOfEveryWrite(t *testing.T) {
	without := map[string]bool{"TaskService/SubmitTasks": true} // its answer has the batch
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			call := service.Methods().Get(i)
			if v1.RulesOf(call).GetEffect() != v1.Effect_EFFECT_WRITE || v1.RulesOf(call).GetUnaudited() || without[actionOf(call)] {
				continue
			}
			e := &v1.AuditEntry{}
			for _, message := range []*filled{fill(call.Input()), fill(call.Output())} {
				addObjects(e, call, message.ProtoReflect())
			}
			if len(e.GetObjects()) == 0 {
				t.Errorf("%s names no object", actionOf(call))
			}
		}
	}
	ctx := auth.With(t.Context(), &auth.Principal{Name: "ann", Role: v1.Role_ROLE_USER, Kind: auth.KindToken, ID: "abc"})
	if e := newEntry(ctx, "x", "10.0.0.1:80", ""); e.GetBy() != "ann" || e.GetRole() != v1.RoleUser || e.GetToken() != "abc" || e.GetFrom() != "10.0.0.1" {
		t.Errorf("%v", e)
	}
}
