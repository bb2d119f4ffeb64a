package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"connectrpc.com/authn"
	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

var quiet = slog.New(slog.DiscardHandler)

// list returns all entries that a request selects, over all pages.
func list(t *testing.T, s Service, req *v1.ListAuditEntriesRequest) []*v1.AuditEntry {
	t.Helper()
	var all []*v1.AuditEntry
	for _, page := range servicetest.Pages(t, t.Context(), s.ListAuditEntries, req) {
		all = append(all, page.GetItems()...)
		if req.GetPageSize() > 0 && len(page.GetItems()) > int(req.GetPageSize()) {
			t.Fatalf("a page has %d entries", len(page.GetItems()))
		}
	}
	return all
}

// TestEntriesOfSeveralGatewaysAreListed records at two gateways concurrently, over several days.
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
		r := NewRecorder(storetest.Open(t, dir), clock, quiet)
		defer r.Close()
		for caller := range 3 {
			recording.Go(func() {
				for k := range each / 3 {
					r.Record(t.Context(), &v1.AuditEntry{
						By: fmt.Sprintf("ann-%d", gateway), Action: "RunService/SubmitRun", Result: v1.AuditOK, Objects: map[string]string{"run": fmt.Sprintf("ci-%d-%d", caller, k)},
					})
				}
			})
		}
	}
	recording.Wait()
	s := Service{storetest.Open(t, dir), clock}
	all := list(t, s, &v1.ListAuditEntriesRequest{PageSize: 7})
	// Calls wait for their entries only for a while.
	for deadline := time.Now().Add(time.Minute); len(all) != 2*each; all = list(t, s, &v1.ListAuditEntriesRequest{PageSize: 7}) {
		if time.Now().After(deadline) {
			t.Fatalf("%d entries", len(all))
		}
		time.Sleep(10 * time.Millisecond)
	}
	ids := map[string]bool{}
	for k, e := range all {
		ids[e.GetId()] = true
		if k > 0 && e.GetAt().AsTime().After(all[k-1].GetAt().AsTime().Add(maxSpan)) {
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
		"refused":        {&v1.ListAuditEntriesRequest{Result: v1.AuditRefused}, 0},
		"ok":             {&v1.ListAuditEntriesRequest{Result: v1.AuditOK, PageSize: 11}, 2 * each},
	} {
		if found := list(t, s, test.req); len(found) != test.want {
			t.Errorf("%s: %d entries", name, len(found))
		}
	}
	before, after := list(t, s, &v1.ListAuditEntriesRequest{Until: timestamppb.New(middle)}), list(t, s, &v1.ListAuditEntriesRequest{Since: timestamppb.New(middle), PageSize: 3})
	if len(before) == 0 || len(after) == 0 || len(before)+len(after) != 2*each {
		t.Errorf("%d before, %d after", len(before), len(after))
	}
	servicetest.Refused(t, t.Context(), s.ListAuditEntries, &v1.ListAuditEntriesRequest{Result: "good"}, connect.CodeInvalidArgument)
}

// TestEntriesSurviveAStoreOutage takes the store down while calls are recorded.
func TestEntriesSurviveAStoreOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		kept := storetest.Open(t, dir)
		r := NewRecorder(kept, time.Now, quiet)
		defer r.Close()
		away := dir + ".away"
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r.Record(t.Context(), &v1.AuditEntry{By: "ann", Action: "RunService/CancelRun", Result: v1.AuditOK})
		if waited := time.Since(began); waited < maxWait {
			t.Errorf("the call waited for %v only", waited)
		}
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(longestPause)
		synctest.Wait()
		if all := list(t, Service{kept, time.Now}, &v1.ListAuditEntriesRequest{}); len(all) != 1 {
			t.Errorf("after the store is back: %v", all)
		}
	})
}

func TestEntriesOfAClosingGatewayAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := storetest.Open(t, t.TempDir())
		r := NewRecorder(kept, time.Now, quiet)
		r.Note(&v1.AuditEntry{By: "ann", From: "10.0.0.1"})
		r.Close()
		r.Record(t.Context(), &v1.AuditEntry{By: "bob"})
		r.Close()
		if all := list(t, Service{kept, time.Now}, &v1.ListAuditEntriesRequest{}); len(all) != 2 {
			t.Errorf("%v", all)
		}
	})
}

// clock is a settable clock.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }

// refuse records a refused request from an address, with a token in every place where one can be.
func refuse(r *Recorder, address string) {
	req := httptest.NewRequest("GET", "/v1/tokens/sy_a_secret?access_token=sy_a_secret", nil)
	req.RemoteAddr = address
	req.Header.Set("Authorization", "Bearer sy_a_secret")
	req.Header.Set(forwardedHeader, "192.0.2.1")
	r.NoteRequest(req, authn.Errorf("the token is not known"))
}

// TestFloodOfRefusalsIsCounted refuses many requests of one address, and one of another.
func TestFloodOfRefusalsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, at := storetest.Open(t, t.TempDir()), newClock()
		r := NewRecorder(kept, at.now, quiet)
		for range 100 {
			refuse(r, "10.0.0.1:1234")
		}
		refuse(r, "10.0.0.2:1234")
		at.add(floodTime)
		refuse(r, "10.0.0.1:1235")
		r.Close()
		all := list(t, Service{kept, at.now}, &v1.ListAuditEntriesRequest{Result: v1.AuditRefused})
		entries, omitted := 0, 0
		for _, e := range all {
			if strings.Contains(e.String(), "secret") || e.GetAction() != "GET /v1/tokens/sy_a_***" || e.GetResult() != "unauthenticated" || e.GetReason() == "" || e.GetForwardedFor() != "192.0.2.1" || strings.Contains(e.GetFrom(), ":") {
				t.Errorf("an entry is %v", e)
			}
			entries, omitted = entries+1, omitted+int(e.GetOmitted())
		}
		// The recorder may have swept the flood in between, which turns one omitted refusal into an entry.
		if entries+omitted != 102 || entries < floodSome+2 || entries > floodSome+3 {
			t.Errorf("%d entries, %d left out: %v", entries, omitted, all)
		}
	})
}

func TestFloodThatEndsIsCounted(t *testing.T) {
	for name, end := range map[string]func(*clock, *Recorder){
		"the gateway closes":                  func(_ *clock, r *Recorder) { r.Close() },
		"there are no requests for some time": func(at *clock, _ *Recorder) { at.add(time.Minute); time.Sleep(time.Minute) },
	} {
		synctest.Test(t, func(t *testing.T) {
			kept, at := storetest.Open(t, t.TempDir()), newClock()
			r := NewRecorder(kept, at.now, quiet)
			defer r.Close()
			for range 100 {
				refuse(r, "10.0.0.1:1234")
			}
			end(at, r)
			synctest.Wait()
			if all := list(t, Service{kept, at.now}, &v1.ListAuditEntriesRequest{}); len(all) != floodSome+1 || all[0].GetOmitted() != 100-floodSome-1 {
				t.Errorf("%s: %v", name, all)
			}
		})
	}
}

func TestFloodFromManyAddressesIsBounded(t *testing.T) {
	admitted := func(address func(n int) string) (count int) {
		var f floods
		at := newClock()
		for n := range 2 * maxFlooding {
			if f.admit(&v1.AuditEntry{From: address(n), At: timestamppb.New(at.now())}) {
				count++
			}
		}
		if len(f.by) > maxFlooding+1 {
			t.Errorf("%d addresses are remembered", len(f.by))
		}
		return count
	}
	if n := admitted(func(n int) string { return fmt.Sprintf("2001:db8::%x", n) }); n != floodSome {
		t.Errorf("a network with many addresses has %d entries", n)
	}
	if n := admitted(func(n int) string { return fmt.Sprintf("10.0.%d.%d", n/250, n%250) }); n != floodAll {
		t.Errorf("many addresses have %d entries", n)
	}
}

// awayStore is a store that is down. With lost set, it stores each value but fails as if the reply had been lost.
type awayStore struct {
	*store.Store
	tries  chan struct{} // holds a token per attempt
	answer atomic.Bool
	lost   bool
}

func (a *awayStore) PutMessageIfAbsent(ctx context.Context, key string, m proto.Message) (existed bool, err error) {
	if a.answer.Load() {
		return a.Store.PutMessageIfAbsent(ctx, key, m)
	}
	if a.lost {
		_, err = a.Store.PutMessageIfAbsent(ctx, key, m)
	}
	select {
	case a.tries <- struct{}{}:
	default:
	}
	return false, errors.Join(err, errors.New("connection reset by peer"))
}

// TestEntryIsStoredOnceWhenTheReplyIsLost loses the reply of a store that has stored a value, while another entry arrives.
func TestEntryIsStoredOnceWhenTheReplyIsLost(t *testing.T) {
	kept := &awayStore{Store: storetest.Open(t, t.TempDir()), tries: make(chan struct{}, 1), lost: true}
	r := NewRecorder(kept, time.Now, quiet)
	defer r.Close()
	var recording sync.WaitGroup
	defer recording.Wait()
	recording.Go(func() { r.Record(t.Context(), &v1.AuditEntry{By: "ann", Result: v1.AuditOK}) })
	<-kept.tries
	recording.Go(func() { r.Record(t.Context(), &v1.AuditEntry{By: "bob", Result: v1.AuditOK}) })
	for {
		if waiting, _ := r.backlog(); waiting == 2 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	kept.answer.Store(true)
	recording.Wait()
	s := Service{kept.Store, time.Now}
	for deadline := time.Now().Add(time.Minute); len(list(t, s, &v1.ListAuditEntriesRequest{})) != 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the store has %v", list(t, s, &v1.ListAuditEntriesRequest{}))
		}
	}
}

// TestFloodLeavesRoomForCalls fills the memory of a recorder with refusals while the store is down.
func TestFloodLeavesRoomForCalls(t *testing.T) {
	at := newClock()
	r := NewRecorder(&awayStore{}, at.now, quiet)
	defer r.Close()
	for n := range maxNotes + 10 {
		at.add(floodTime)
		refuse(r, fmt.Sprintf("10.0.%d.%d:1", n/250, n%250))
	}
	if waiting, dropped := r.backlog(); waiting != maxNotes || dropped < 10 {
		t.Errorf("%d entries wait, and %d are dropped", waiting, dropped)
	}
	if _, ok := r.add(&v1.AuditEntry{By: "ann"}, maxPending); !ok {
		t.Error("a call has no entry")
	}
}

// TestListReadsOnlyTheRequestedTimes counts the reads of lists over entries for each minute of four days.
func TestListReadsOnlyTheRequestedTimes(t *testing.T) {
	kept := storetest.Open(t, t.TempDir())
	first := time.Date(2026, 11, 22, 0, 0, 30, 0, time.UTC)
	end := first.AddDate(0, 0, 4)
	for n, at := 0, first; at.Before(end); n, at = n+1, at.Add(10*time.Minute) {
		part := &v1.AuditPart{Entries: []*v1.AuditEntry{
			{Id: fmt.Sprintf("a-%d", 2*n), At: timestamppb.New(at)}, {Id: fmt.Sprintf("a-%d", 2*n+1), At: timestamppb.New(at.Add(maxSpan - time.Second))},
		}}
		if err := kept.PutMessage(t.Context(), storekey.Audit(at, "a", int64(2*n)), part); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		since, until time.Time
		found, reads int
	}{
		"the last hour":                      {end.Add(-time.Hour), time.Time{}, 12, 20},
		"an hour some days ago":              {first.Add(24 * time.Hour), first.Add(25 * time.Hour), 12, 20},
		"a minute within a value":            {first.Add(30 * time.Second), first.Add(90 * time.Second), 1, 5},
		"midnight, to which a value reaches": {time.Date(2026, 11, 25, 0, 1, 0, 0, time.UTC), time.Date(2026, 11, 25, 0, 2, 0, 0, time.UTC), 1, 5},
		"all of history":                     {time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 2 * 6 * 24 * 4, 6*24*4 + 10},
		"before all":                         {time.Time{}, first, 0, 5},
		"after all":                          {end.Add(time.Hour), time.Time{}, 0, 5},
	} {
		req := &v1.ListAuditEntriesRequest{}
		if !test.since.IsZero() {
			req.Since = timestamppb.New(test.since)
		}
		if !test.until.IsZero() {
			req.Until = timestamppb.New(test.until)
		}
		l := &lister{store: kept, req: req, limit: 10_000}
		if err := l.read(t.Context(), end.Add(day)); err != nil || len(l.found) != test.found || l.reads > test.reads {
			t.Errorf("%s: %d entries after %d reads, %v", name, len(l.found), l.reads, err)
		}
	}
}

// TestUnreadableEntriesHideNoOther checks that a value that cannot be decoded is named in a warning, and the others are listed.
func TestUnreadableEntriesHideNoOther(t *testing.T) {
	kept, at := storetest.Open(t, t.TempDir()), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	bad := storekey.Audit(at, "a", 1)
	err := errors.Join(kept.Put(t.Context(), bad, []byte("\xff")), kept.PutMessage(t.Context(), storekey.Audit(at, "a", 2), &v1.AuditPart{Entries: []*v1.AuditEntry{{Id: "a-2", At: timestamppb.New(at)}}}))
	if err != nil {
		t.Fatal(err)
	}
	l := &lister{store: kept, req: &v1.ListAuditEntriesRequest{}, limit: 10}
	if err := l.read(t.Context(), at.Add(day)); err != nil || len(l.found) != 1 || len(l.warnings) != 1 || !strings.Contains(l.warnings[0], bad) {
		t.Errorf("%v, %q, %v", l.found, l.warnings, err)
	}
}

// TestListOfManyValuesIsContinued lists more values than a page reads, few of which match.
func TestListOfManyValuesIsContinued(t *testing.T) {
	kept := storetest.Open(t, "mem://")
	first := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	for n := range maxReads + 500 {
		at := first.Add(time.Duration(n) * 10 * time.Second)
		by := "ann"
		if n%1000 == 0 {
			by = "bob"
		}
		if err := kept.PutMessage(t.Context(), storekey.Audit(at, "a", int64(n)), &v1.AuditPart{Entries: []*v1.AuditEntry{{By: by, At: timestamppb.New(at)}}}); err != nil {
			t.Fatal(err)
		}
	}
	s := Service{kept, func() time.Time { return first.Add(day) }}
	page, err := s.ListAuditEntries(t.Context(), connect.NewRequest(&v1.ListAuditEntriesRequest{Who: "bob"}))
	if err != nil || len(page.Msg.GetItems()) != 2 || page.Msg.GetNextPageToken() == "" {
		t.Errorf("the first page is %v, %v", page, err)
	}
	if all := list(t, s, &v1.ListAuditEntriesRequest{Who: "bob"}); len(all) != 3 {
		t.Errorf("all are %v", all)
	}
}

func TestClaimedNamesAreFound(t *testing.T) {
	l := lister{req: &v1.ListAuditEntriesRequest{Who: "ann"}}
	for by, want := range map[string]bool{"ann": true, "ann" + auth.Unverified: true, "anna": false, "": false} {
		if l.matches(&v1.AuditEntry{By: by}) != want {
			t.Errorf("%q: %v", by, !want)
		}
	}
}

func TestOnlyRefusalsRecordAReason(t *testing.T) {
	for err, want := range map[error]string{
		nil: "ok/", errors.New("env X is secret"): "internal/",
		connect.NewError(connect.CodeInvalidArgument, errors.New("env X is secret")):                  "invalid_argument/",
		connect.NewError(connect.CodePermissionDenied, errors.New("it needs the role admin")):         "permission_denied/it needs the role admin",
		fmt.Errorf("call: %w", connect.NewError(connect.CodeUnauthenticated, errors.New("no token"))): "unauthenticated/",
	} {
		e := &v1.AuditEntry{}
		setResult(e, err)
		if got := e.GetResult() + "/" + e.GetReason(); !strings.HasPrefix(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// TestEveryWriteNamesItsObjects checks that the objects of each call that changes something can be determined.
func TestEveryWriteNamesItsObjects(t *testing.T) {
	without := map[string]bool{"TaskService/SubmitTasks": true} // its response has the batch
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

// TestObjectsOfRequestsAndAnswers covers calls whose responses are more precise than their requests, and texts that
// are not names.
func TestObjectsOfRequestsAndAnswers(t *testing.T) {
	const token = "sy_abc_hunter2"
	for name, test := range map[string]struct {
		call     string
		messages []proto.Message
		want     map[string]string
	}{
		"a short id":        {"RunService/CancelRun", []proto.Message{&v1.CancelRunRequest{Id: "ci"}, &v1.CancelRunResponse{Id: "ci-1"}}, map[string]string{"run": "ci-1"}},
		"a copy":            {"RunService/RerunRun", []proto.Message{&v1.RerunRunRequest{Id: "ci-1"}, &v1.RerunRunResponse{Id: "ci-2", Name: "ci"}}, map[string]string{"run": "ci-1", "copy": "ci-2"}},
		"a new token":       {"AuthService/CreateToken", []proto.Message{&v1.CreateTokenRequest{Name: "ann"}, &v1.CreateTokenResponse{Secret: token, Token: &v1.Token{Id: "abc", Name: "ann"}}}, map[string]string{"name": "ann", "token": "abc"}},
		"a token as id":     {"AuthService/RevokeToken", []proto.Message{&v1.RevokeTokenRequest{Id: token}}, map[string]string{"token": "sy_abc_***"}},
		"a secret":          {"SecretService/SetSecret", []proto.Message{&v1.SetSecretRequest{Name: "db", Value: []byte("hunter2")}}, map[string]string{"secret": "db"}},
		"a released secret": {"SecretService/ReleaseSecret", []proto.Message{&v1.ReleaseSecretRequest{Run: "ci-1", Task: "a", Node: "n", Secret: "db"}, &v1.ReleaseSecretResponse{Value: []byte("hunter2")}}, map[string]string{"run": "ci-1", "task": "a", "node": "n", "secret": "db"}},
		"a value of a run":  {"BlobService/PutBlob", []proto.Message{&v1.PutBlobRequest{Key: storekey.RunPrefix("ci-1") + "0/x", Data: []byte("hunter2")}}, map[string]string{"run": "ci-1", "value": "runs/ci-1/0/x"}},
		"a value of no run": {"BlobService/GetBlob", []proto.Message{&v1.GetBlobRequest{Key: "auth/tokens/abc"}}, map[string]string{"value": "auth/tokens/abc"}},
	} {
		e := &v1.AuditEntry{}
		for _, service := range v1.Services() {
			for i := range service.Methods().Len() {
				if call := service.Methods().Get(i); actionOf(call) == test.call {
					for _, m := range test.messages {
						addObjects(e, call, m.ProtoReflect())
					}
				}
			}
		}
		if !maps.Equal(e.GetObjects(), test.want) || strings.Contains(e.String(), "hunter2") {
			t.Errorf("%s: %v", name, e)
		}
	}
	long := sanitize(strings.Repeat("ä", maxText))
	if len(long) > maxText || !utf8.ValidString(long) || sanitize("a\xffb") != "ab" || strings.Contains(sanitize("GET /v1/x/eyJhbGciOi.hunter2.hunter2"), "hunter2") {
		t.Errorf("a long text is %q", long)
	}
}
