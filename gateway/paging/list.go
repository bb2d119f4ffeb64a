package paging

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/names"
)

// Page tokens are opaque to clients: the base64 encoding of the list and of the position where its next page starts.
// tokenFields separates the fields.
const tokenFields = "\x00"

// MaxBytes is the size at which a page is cut, in bytes. A page always holds at least one item.
const MaxBytes = 3 << 20

// List identifies a list that is paged: a call with its request. Fields that may differ between pages of the same list are
// not part of it: the run, which may be spelled in several ways and is part of the position; since and until, which move
// with "the last hour"; the page; and whether to count.
type List string

// ListOf returns the list that a request pages through.
func ListOf(req proto.Message) (List, error) {
	m := proto.Clone(req).ProtoReflect()
	for _, name := range []protoreflect.Name{"id", "since", "until", "page_size", "page_token", "totals"} {
		if field := m.Descriptor().Fields().ByName(name); field != nil {
			m.Clear(field)
		}
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	if err != nil {
		return "", fmt.Errorf("identify the list of a request: %w", err)
	}
	digest := sha256.Sum256(text)
	return List(fmt.Sprintf("%s.%x", m.Descriptor().Name(), digest[:6])), nil
}

// Token returns the page token for a position of two fields.
func (l List) Token(fields ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(l) + tokenFields + strings.Join(fields, tokenFields)))
}

// InvalidToken returns the error for a page token that does not belong to the list.
func InvalidToken() error {
	return rpcerror.Invalid("the page token belongs to another list; repeat the request that returned it and change at most the page size")
}

// Place returns the two fields of a token, or InvalidArgument if the token belongs to another list.
func (l List) Place(token string) (first, second string, err error) {
	text, decodeErr := base64.RawURLEncoding.DecodeString(token)
	if decodeErr != nil {
		return "", "", InvalidToken()
	}
	fields := strings.Split(string(text), tokenFields)
	if len(fields) != 3 || fields[0] != string(l) {
		return "", "", InvalidToken()
	}
	return fields[1], fields[2], nil
}

// EncodeTask returns the token of a page of the tasks of a run that starts at a task.
func (l List) EncodeTask(run, task string) string { return l.Token(run, task) }

// DecodeTask returns the task that a page starts at, or "" for the first page.
func (l List) DecodeTask(token, run string) (task string, err error) {
	if token == "" {
		return "", nil
	}
	of, task, err := l.Place(token)
	if err == nil && of != run {
		err = rpcerror.Invalid("the page token belongs to run %s", of)
	}
	return task, err
}

// EncodeRun returns the token of a page of runs that starts after a position.
func (l List) EncodeRun(p Position) string {
	return l.Token(p.Start.Format(time.RFC3339Nano), p.RunID)
}

// DecodeRun returns the position that a page starts after, or nil for the first page.
func (l List) DecodeRun(token string) (*Position, error) {
	if token == "" {
		return nil, nil
	}
	start, runID, err := l.Place(token)
	if err != nil {
		return nil, err
	}
	t, parseErr := time.Parse(time.RFC3339Nano, start)
	if parseErr != nil {
		return nil, InvalidToken()
	}
	return &Position{Start: t, RunID: runID}, nil
}

// EncodeNode returns the token of a page of nodes that starts at a name.
func (l List) EncodeNode(name string) string { return l.Token(name, "") }

// DecodeNode returns the name that a page starts at, or "" for the first page.
func (l List) DecodeNode(token string) (name string, err error) {
	if token == "" {
		return "", nil
	}
	name, _, err = l.Place(token)
	return name, err
}

// EncodeWorkflow returns the token of a page of stored definitions that starts at a name.
func (l List) EncodeWorkflow(name string) string { return l.Token(name, "") }

// DecodeWorkflow returns the name that a page starts at, or "" for the first page.
func (l List) DecodeWorkflow(token string) (name string, err error) {
	if token == "" {
		return "", nil
	}
	name, _, err = l.Place(token)
	return name, err
}

// EncodeInstance returns the token of a page of the instances of a task that starts at an index.
func (l List) EncodeInstance(run, task string, index int) string {
	return l.Token(run, names.InstanceName(task, index))
}

// DecodeInstance returns the index that a page starts at, or 0 for the first page.
func (l List) DecodeInstance(token, run, task string) (index int, err error) {
	if token == "" {
		return 0, nil
	}
	of, instance, err := l.Place(token)
	if err != nil {
		return 0, err
	}
	group, index, ok := names.ParseInstanceName(instance)
	if !ok {
		return 0, InvalidToken()
	}
	if of != run || group != task {
		return 0, rpcerror.Invalid("the page token belongs to task %s of run %s", group, of)
	}
	return index, nil
}

// EncodeKey returns the token of a page of keys that starts after a key.
func (l List) EncodeKey(key string) string { return l.Token(key, "") }

// DecodeKey returns the key that a page starts after, or "" for the first page.
func (l List) DecodeKey(token string) (key string, err error) {
	if token == "" {
		return "", nil
	}
	key, _, err = l.Place(token)
	return key, err
}
