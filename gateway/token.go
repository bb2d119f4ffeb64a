package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/workflows/names"
)

// Page tokens are opaque to clients: the base64 form of the list that they are of
// and of where its next page starts.
const tokenFields = "\x00"

// list is what pages are of: a call and what it asks for, but for the run, which is
// a part of the place and may be typed in several ways, for since and until when, which move on with "the last hour", and for the page.
type list string

// listOf returns the list that a request asks for a page of.
func listOf(req proto.Message) (list, error) {
	m := proto.Clone(req).ProtoReflect()
	for _, name := range []protoreflect.Name{"id", "since", "until", "page_size", "page_token"} {
		if field := m.Descriptor().Fields().ByName(name); field != nil {
			m.Clear(field)
		}
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	if err != nil {
		return "", fmt.Errorf("name a list: %w", err)
	}
	digest := sha256.Sum256(text)
	return list(fmt.Sprintf("%s.%x", m.Descriptor().Name(), digest[:6])), nil
}

func (l list) token(fields ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(l) + tokenFields + strings.Join(fields, tokenFields)))
}

// errToken is the error for a page token that the list has not given.
func errToken() error {
	return invalid("the page token is not one of this list; send it with the request that it came from, where only the size of the page may change")
}

// place returns the two fields of a token of the list.
func (l list) place(token string) (first, second string, err error) {
	text, decodeErr := base64.RawURLEncoding.DecodeString(token)
	if decodeErr != nil {
		return "", "", errToken()
	}
	fields := strings.Split(string(text), tokenFields)
	if len(fields) != 3 || fields[0] != string(l) {
		return "", "", errToken()
	}
	return fields[1], fields[2], nil
}

// encodeTask says that a page of the tasks of a run starts with a task.
func (l list) encodeTask(run, task string) string { return l.token(run, task) }

// decodeTask returns the task that a page starts with; empty: the first.
func (l list) decodeTask(token, run string) (task string, err error) {
	if token == "" {
		return "", nil
	}
	of, task, err := l.place(token)
	if err == nil && of != run {
		err = invalid("the page token belongs to run %s", of)
	}
	return task, err
}

// position is a place in the list of executions, newest first.
type position struct {
	start time.Time
	runID string // Temporal's, which orders what started at the same time
}

// before says that p is further up in the list than q.
func (p position) before(q position) bool {
	if !p.start.Equal(q.start) {
		return p.start.After(q.start)
	}
	return p.runID > q.runID
}

// encodeRun says that a page of runs starts after a position.
func (l list) encodeRun(p position) string {
	return l.token(p.start.Format(time.RFC3339Nano), p.runID)
}

// decodeRun returns the position that a page starts after; nil: the top.
func (l list) decodeRun(token string) (*position, error) {
	if token == "" {
		return nil, nil
	}
	start, runID, err := l.place(token)
	if err != nil {
		return nil, err
	}
	t, parseErr := time.Parse(time.RFC3339Nano, start)
	if parseErr != nil {
		return nil, errToken()
	}
	return &position{start: t, runID: runID}, nil
}

// encodeNode says that a page of nodes starts with a name.
func (l list) encodeNode(name string) string { return l.token(name, "") }

// decodeNode returns the name that a page starts with; empty: the first.
func (l list) decodeNode(token string) (name string, err error) {
	if token == "" {
		return "", nil
	}
	name, _, err = l.place(token)
	return name, err
}

// encodeWorkflow says that a page of stored definitions starts with a name.
func (l list) encodeWorkflow(name string) string { return l.token(name, "") }

// decodeWorkflow returns the name that a page starts with; empty: the first.
func (l list) decodeWorkflow(token string) (name string, err error) {
	if token == "" {
		return "", nil
	}
	name, _, err = l.place(token)
	return name, err
}

// encodeInstance says that a page of the instances of a task starts with a number.
func (l list) encodeInstance(run, task string, index int) string {
	return l.token(run, names.InstanceName(task, index))
}

// decodeInstance returns the number that a page starts with.
func (l list) decodeInstance(token, run, task string) (index int, err error) {
	if token == "" {
		return 0, nil
	}
	of, instance, err := l.place(token)
	if err != nil {
		return 0, err
	}
	group, index, ok := names.ParseInstanceName(instance)
	if !ok {
		return 0, errToken()
	}
	if of != run || group != task {
		return 0, invalid("the page token belongs to task %s of run %s", group, of)
	}
	return index, nil
}

// encodeEvent says that a page of the events of a run starts at a place.
func (l list) encodeEvent(run string, at eventPlace) string {
	place, _ := json.Marshal(at) // numbers and names
	return l.token(run, string(place))
}

// decodeEvent returns the place that a page starts at.
func (l list) decodeEvent(token, run string) (at eventPlace, err error) {
	if token == "" {
		return eventPlace{}, nil
	}
	of, place, err := l.place(token)
	if err != nil {
		return eventPlace{}, err
	}
	if of != run {
		return eventPlace{}, invalid("the page token belongs to run %s", of)
	}
	if json.Unmarshal([]byte(place), &at) != nil || !at.valid() {
		return eventPlace{}, errToken()
	}
	return at, nil
}

// runEventToken is the part of a token that a runEventPlace is without its run.
type runEventToken struct {
	Start time.Time   `json:"s"`
	RunID string      `json:"r"`
	At    *eventPlace `json:"a,omitempty"`
}

// encodeRunEvent returns the token of a page of the events of all runs that starts at a place.
func (l list) encodeRunEvent(p runEventPlace) string {
	place, _ := json.Marshal(runEventToken{p.position.start, p.position.runID, p.at}) // a time, numbers and names
	return l.token(p.run, string(place))
}

// decodeRunEvent returns the place that a page starts at, or nil if it is the first page.
func (l list) decodeRunEvent(token string) (*runEventPlace, error) {
	if token == "" {
		return nil, nil
	}
	run, place, err := l.place(token)
	if err != nil {
		return nil, err
	}
	var at runEventToken
	if json.Unmarshal([]byte(place), &at) != nil || at.At != nil && !at.At.valid() {
		return nil, errToken()
	}
	return &runEventPlace{run: run, position: position{start: at.Start, runID: at.RunID}, at: at.At}, nil
}

// encodeKey says that a page of keys starts after one.
func (l list) encodeKey(key string) string { return l.token(key, "") }

// decodeKey returns the key that a page starts after; empty: the start.
func (l list) decodeKey(token string) (key string, err error) {
	if token == "" {
		return "", nil
	}
	key, _, err = l.place(token)
	return key, err
}
