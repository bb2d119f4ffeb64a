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
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	defaultPage = 100
	// maxReads is how many values a page reads.
	maxReads = 2000
	// maxDays is how far back entries are looked for that name no beginning; the store keeps them for less.
	maxDays = 400
)

// Service answers the calls of AuditService. It is safe for concurrent use.
type Service struct {
	Store *store.Store
	Now   func() time.Time
}

var _ switchyardv1connect.AuditServiceHandler = Service{}

// ListAuditEntries lists entries, the newest first.
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
	until := s.Now().Add(24 * time.Hour) // clocks of gateways differ
	if m.GetUntil() != nil {
		until = m.GetUntil().AsTime()
	}
	since := until.AddDate(0, 0, -maxDays)
	if m.GetSince() != nil {
		since = m.GetSince().AsTime()
	}
	for day := until.UTC().Truncate(24 * time.Hour); !day.Before(since.UTC().Truncate(24 * time.Hour)); day = day.AddDate(0, 0, -1) {
		if more, err := l.readDay(ctx, day); err != nil {
			return nil, err
		} else if more {
			break
		}
	}
	res := &v1.ListAuditEntriesResponse{Items: l.found}
	if l.next.key != "" {
		res.NextPageToken = pages.Token(l.next.key, strconv.Itoa(l.next.index))
	}
	return connect.NewResponse(res), nil
}

// place is an entry: a key, and its index in the value.
type place struct {
	key   string // "": the newest
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
	if result == "" || result == resultOK || result == resultRefused || result == resultFailed {
		return nil
	}
	var code connect.Code
	if err := code.UnmarshalText([]byte(result)); err != nil {
		return rpcerror.Invalid("result %q is none of ok, refused, failed, or a code such as permission_denied", result)
	}
	return nil
}

// lister reads a page.
type lister struct {
	store *store.Store
	req   *v1.ListAuditEntriesRequest
	limit int
	at    place // first entry of the page
	found []*v1.AuditEntry
	next  place // first entry of the next page
	reads int
}

// readDay adds the entries of a day, the newest first, and reports whether the page is full.
func (l *lister) readDay(ctx context.Context, day time.Time) (full bool, err error) {
	prefix := storekey.AuditDay(day)
	if l.at.key != "" && prefix > l.at.key {
		return false, nil // of pages before
	}
	var keys []string
	for key, err := range l.store.Keys(ctx, prefix) {
		if err != nil {
			return false, fmt.Errorf("list the audit: %w", err)
		}
		if l.at.key == "" || key <= l.at.key {
			keys = append(keys, key)
		}
	}
	for _, key := range slices.Backward(keys) {
		if l.reads++; l.reads > maxReads {
			l.next = place{key, -1}
			return true, nil
		}
		var part v1.AuditPart
		err := l.store.GetMessage(ctx, key, &part)
		if errors.Is(err, store.ErrNotFound) {
			continue // it has just been collected
		}
		if err != nil {
			return false, fmt.Errorf("read the audit: %w", err)
		}
		for i, e := range slices.Backward(part.GetEntries()) {
			if key == l.at.key && l.at.index >= 0 && i > l.at.index || !l.wants(e) {
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

// wants reports whether the request selects an entry.
func (l *lister) wants(e *v1.AuditEntry) bool {
	at, req := e.GetAt().AsTime(), l.req
	switch {
	case req.GetSince() != nil && at.Before(req.GetSince().AsTime()), req.GetUntil() != nil && !at.Before(req.GetUntil().AsTime()):
		return false
	case req.GetWho() != "" && e.GetBy() != req.GetWho():
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
	case resultRefused:
		return refused
	case resultFailed:
		return e.GetResult() != resultOK && !refused
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
