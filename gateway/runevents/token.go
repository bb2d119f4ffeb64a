package runevents

import (
	"encoding/json"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"time"
)

// encodeEvent returns the token of a page of the events of a run that starts at a place.
func encodeEvent(l paging.List, run string, at eventPlace) string {
	place, _ := json.Marshal(at) // numbers and names cannot fail
	return l.Token(run, string(place))
}

// decodeEvent returns the place at which a page starts. An empty token means the first place.
func decodeEvent(l paging.List, token, run string) (at eventPlace, err error) {
	if token == "" {
		return eventPlace{}, nil
	}
	of, place, err := l.Place(token)
	if err != nil {
		return eventPlace{}, err
	}
	if of != run {
		return eventPlace{}, rpcerror.Invalid("the page token belongs to run %s", of)
	}
	if json.Unmarshal([]byte(place), &at) != nil || !at.isValid() {
		return eventPlace{}, paging.InvalidToken()
	}
	return at, nil
}

// runToken is the part of a token that holds a runPlace except its run.
type runToken struct {
	Start time.Time   `json:"s"`
	RunID string      `json:"r"`
	At    *eventPlace `json:"a,omitempty"`
}

// encodeRunEvent returns the token of a page of the events of all runs that starts at a place.
func encodeRunEvent(l paging.List, p runPlace) string {
	place, _ := json.Marshal(runToken{p.position.Start, p.position.RunID, p.at}) // a time, numbers and names cannot fail
	return l.Token(p.run, string(place))
}

// decodeRunEvent returns the place at which a page starts, or nil for the first page.
func decodeRunEvent(l paging.List, token string) (*runPlace, error) {
	if token == "" {
		return nil, nil
	}
	run, place, err := l.Place(token)
	if err != nil {
		return nil, err
	}
	var at runToken
	if json.Unmarshal([]byte(place), &at) != nil || at.At != nil && !at.At.isValid() {
		return nil, paging.InvalidToken()
	}
	return &runPlace{run: run, position: paging.Position{Start: at.Start, RunID: at.RunID}, at: at.At}, nil
}
