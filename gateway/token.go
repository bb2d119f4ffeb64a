package gateway

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"switchyard/workflows/names"
)

// Page tokens are opaque to clients: the base64 form of a kind and of where the
// next page starts.
const (
	taskTokenKind     = "tasks"
	instanceTokenKind = "instances"
	runTokenKind      = "runs"
	nodeTokenKind     = "nodes"
	eventTokenKind    = "events"
	workflowTokenKind = "workflows"
	tokenFields       = "\x00"
)

func encodeToken(fields ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(fields, tokenFields)))
}

// decodeToken returns the two fields of a token after its kind.
func decodeToken(token, kind string) (first, second string, err error) {
	bad := invalid("the page token is not one of this list")
	text, decodeErr := base64.RawURLEncoding.DecodeString(token)
	if decodeErr != nil {
		return "", "", bad
	}
	fields := strings.Split(string(text), tokenFields)
	if len(fields) != 3 || fields[0] != kind {
		return "", "", bad
	}
	return fields[1], fields[2], nil
}

// encodeTaskToken says that a page of the tasks of a run starts with a task.
func encodeTaskToken(run, task string) string { return encodeToken(taskTokenKind, run, task) }

// decodeTaskToken returns the task that a page starts with; empty: the first.
func decodeTaskToken(token, run string) (task string, err error) {
	if token == "" {
		return "", nil
	}
	of, task, err := decodeToken(token, taskTokenKind)
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

// encodeRunToken says that a page of runs starts after a position.
func encodeRunToken(p position) string {
	return encodeToken(runTokenKind, p.start.Format(time.RFC3339Nano), p.runID)
}

// decodeRunToken returns the position that a page starts after; nil: the top.
func decodeRunToken(token string) (*position, error) {
	if token == "" {
		return nil, nil
	}
	start, runID, err := decodeToken(token, runTokenKind)
	if err != nil {
		return nil, err
	}
	t, parseErr := time.Parse(time.RFC3339Nano, start)
	if parseErr != nil {
		return nil, invalid("the page token is not one of this list")
	}
	return &position{start: t, runID: runID}, nil
}

// encodeNodeToken says that a page of nodes starts with a name.
func encodeNodeToken(name string) string { return encodeToken(nodeTokenKind, name, "") }

// decodeNodeToken returns the name that a page starts with; empty: the first.
func decodeNodeToken(token string) (name string, err error) {
	if token == "" {
		return "", nil
	}
	name, _, err = decodeToken(token, nodeTokenKind)
	return name, err
}

// encodeWorkflowToken says that a page of stored definitions starts with a name.
func encodeWorkflowToken(name string) string { return encodeToken(workflowTokenKind, name, "") }

// decodeWorkflowToken returns the name that a page starts with; empty: the first.
func decodeWorkflowToken(token string) (name string, err error) {
	if token == "" {
		return "", nil
	}
	name, _, err = decodeToken(token, workflowTokenKind)
	return name, err
}

// encodeInstanceToken says that a page of the instances of a task starts with a number.
func encodeInstanceToken(run, task string, index int) string {
	return encodeToken(instanceTokenKind, run, names.InstanceName(task, index))
}

// decodeInstanceToken returns the number that a page starts with.
func decodeInstanceToken(token, run, task string) (index int, err error) {
	if token == "" {
		return 0, nil
	}
	of, instance, err := decodeToken(token, instanceTokenKind)
	if err != nil {
		return 0, err
	}
	group, index, ok := names.ParseInstanceName(instance)
	if !ok {
		return 0, invalid("the page token is not one of this list")
	}
	if of != run || group != task {
		return 0, invalid("the page token belongs to task %s of run %s", group, of)
	}
	return index, nil
}

// encodeEventToken says that a page of the events of a run starts at a place.
func encodeEventToken(run string, at eventPlace) string {
	place, _ := json.Marshal(at) // numbers and names
	return encodeToken(eventTokenKind, run, string(place))
}

// decodeEventToken returns the place that a page starts at.
func decodeEventToken(token, run string) (at eventPlace, err error) {
	if token == "" {
		return eventPlace{}, nil
	}
	of, place, err := decodeToken(token, eventTokenKind)
	if err != nil {
		return eventPlace{}, err
	}
	if of != run {
		return eventPlace{}, invalid("the page token belongs to run %s", of)
	}
	if json.Unmarshal([]byte(place), &at) != nil || !at.valid() {
		return eventPlace{}, invalid("the page token is not one of this list")
	}
	return at, nil
}
