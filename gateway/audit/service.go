package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	defaultPage = 100
	// maxReads bounds the number of values and days that a page reads.
	maxReads = 2000
	day      = 24 * time.Hour
)

// Service implements AuditService. It is safe for concurrent use.
type Service struct {
	Store *store.Store
	Now   func() time.Time
}

var _ switchyardv1connect.AuditServiceHandler = Service{}

// ListAuditEntries lists entries, newest first.
func (s Service) ListAuditEntries(ctx context.Context, req *connect.Request[v1.ListAuditEntriesRequest]) (*connect.Response[v1.ListAuditEntriesResponse], error) {
	m := req.Msg
	if err := checkResult(m.GetResult()); err != nil {
		return nil, err
	}
	pages, err := paging.ListOf(m)
	if err != nil {
		return nil, err
	}
	at, err := parsePlace(pages, m.GetPageToken())
	if err != nil {
		return nil, err
	}
	l := &lister{store: s.Store, req: m, limit: cmp.Or(int(m.GetPageSize()), defaultPage), at: at}
	if err := l.read(ctx, s.Now().Add(day)); err != nil { // clocks of gateways differ
		return nil, err
	}
	res := &v1.ListAuditEntriesResponse{Items: l.found, Warnings: l.warnings}
	if l.next.key != "" {
		res.NextPageToken = pages.Token(l.next.key, strconv.Itoa(l.next.index))
	}
	return connect.NewResponse(res), nil
}

// place identifies an entry by the key of a value and its index in the value.
type place struct {
	key   string // "" for the newest entry
	index int
}

func parsePlace(pages paging.List, token string) (place, error) {
	if token == "" {
		return place{}, nil
	}
	key, index, err := pages.Place(token)
	if err != nil {
		return place{}, err
	}
	n, err := strconv.Atoi(index)
	if err != nil || !strings.HasPrefix(key, storekey.AuditPrefix) {
		return place{}, paging.InvalidToken()
	}
	return place{key, n}, nil
}

func checkResult(result string) error {
	if result == "" || result == v1.AuditOK || result == v1.AuditRefused || result == v1.AuditFailed {
		return nil
	}
	var code connect.Code
	if err := code.UnmarshalText([]byte(result)); err != nil {
		return rpcerror.Invalid("unknown result %q; use ok, refused, failed, or a code such as permission_denied", result)
	}
	return nil
}

// lister reads a page of entries.
type lister struct {
	store *store.Store
	req   *v1.ListAuditEntriesRequest
	limit int
	at    place // first entry of the page
	found []*v1.AuditEntry
	next  place // first entry of the next page
	// warnings name the values that cannot be read.
	warnings []string
	reads    int
	// from is the first key to read, and before is the end of the key range.
	from, before string
}

// read adds entries recorded before a given time, newest first, until the page is full.
func (l *lister) read(ctx context.Context, before time.Time) error {
	first, err := l.firstDay(ctx)
	if err != nil || first.IsZero() {
		return err
	}
	if until := l.req.GetUntil(); until != nil && until.AsTime().Before(before) {
		before = until.AsTime()
	}
	if since := l.req.GetSince(); since != nil {
		if from := since.AsTime().Add(-maxSpan); from.After(first) {
			first = from
		}
	}
	before = before.Add(maxSpan)
	l.from, l.before = storekey.AuditTime(first), storekey.AuditTime(before)
	for d := before.UTC().Truncate(day); !d.Before(first.UTC().Truncate(day)); d = d.Add(-day) {
		if full, err := l.readDay(ctx, d); err != nil || full {
			return err
		}
	}
	return nil
}

// firstDay returns the day of the oldest entry, or the zero time if there are no entries.
func (l *lister) firstDay(ctx context.Context) (time.Time, error) {
	for key, err := range l.store.Keys(ctx, storekey.AuditPrefix) {
		if err != nil {
			return time.Time{}, fmt.Errorf("list the audit: %w", err)
		}
		if d, ok := storekey.ParseAuditDay(key); ok {
			return d, nil
		}
	}
	return time.Time{}, nil
}

// readDay adds the entries of a day, newest first, and reports whether the page is full.
func (l *lister) readDay(ctx context.Context, d time.Time) (full bool, err error) {
	prefix := storekey.AuditDay(d)
	if l.at.key != "" && prefix > l.at.key {
		return false, nil // belongs to earlier pages
	}
	if l.spend(prefix + afterAll) {
		return true, nil
	}
	var keys []string
	for key, err := range l.store.Keys(ctx, prefix) {
		if err != nil {
			return false, fmt.Errorf("list the audit: %w", err)
		}
		if key >= l.before || l.at.key != "" && key > l.at.key {
			break
		}
		if key >= l.from {
			keys = append(keys, key)
		}
	}
	for _, key := range slices.Backward(keys) {
		if l.spend(key) {
			return true, nil
		}
		var part v1.AuditPart
		err := l.store.GetMessage(ctx, key, &part)
		if errors.Is(err, store.ErrNotFound) {
			continue // the retention has just deleted it
		}
		if store.IsOfOneValue(err) {
			l.warnings = append(l.warnings, fmt.Sprintf("some entries are left out: %v", err))
			continue
		}
		if err != nil {
			return false, fmt.Errorf("read the audit: %w", err)
		}
		for i, e := range slices.Backward(part.GetEntries()) {
			if key == l.at.key && l.at.index >= 0 && i > l.at.index || !l.matches(e) {
				continue
			}
			if len(l.found) == l.limit {
				l.next = place{key, i}
				return true, nil
			}
			l.found = append(l.found, e)
		}
	}
	return false, nil
}

// afterAll sorts after every key of a day.
const afterAll = "~"

// spend counts a read. If the page has used up its reads, spend makes the next page begin at key and returns
// true.
func (l *lister) spend(key string) (full bool) {
	if l.reads++; l.reads <= maxReads {
		return false
	}
	l.next = place{key, -1}
	return true
}

// matches reports whether the request selects an entry.
func (l *lister) matches(e *v1.AuditEntry) bool {
	at, req := e.GetAt().AsTime(), l.req
	switch {
	case req.GetSince() != nil && at.Before(req.GetSince().AsTime()), req.GetUntil() != nil && !at.Before(req.GetUntil().AsTime()):
		return false
	case req.GetWho() != "" && e.GetBy() != req.GetWho() && e.GetBy() != req.GetWho()+auth.Unverified:
		return false
	case req.GetWhat() != "" && !strings.Contains(strings.ToLower(e.GetAction()), strings.ToLower(req.GetWhat())):
		return false
	case req.GetObject() != "" && !hasObject(e, req.GetObject()):
		return false
	}
	refused := e.GetResult() == connect.CodeUnauthenticated.String() || e.GetResult() == connect.CodePermissionDenied.String()
	switch req.GetResult() {
	case "":
		return true
	case v1.AuditRefused:
		return refused
	case v1.AuditFailed:
		return e.GetResult() != v1.AuditOK && !refused
	}
	return e.GetResult() == req.GetResult()
}

func hasObject(e *v1.AuditEntry, object string) bool {
	for _, name := range e.GetObjects() {
		if name == object {
			return true
		}
	}
	return false
}
