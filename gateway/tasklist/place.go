package tasklist

import (
	"encoding/json"
	"time"

	"switchyard/gateway/paging"
)

// place is a place in the list of tasks: at a task, or an instance of it, of a run, which has a position in the list of runs.
type place struct {
	run      string
	position paging.Position // zero if the request names the run
	task     string          // "" for the first
	index    int             // of the instance
	ended    bool            // the place is after the last task of the run
}

// placeToken is the part of a token that a place is without its run.
type placeToken struct {
	Start time.Time `json:"s"`
	RunID string    `json:"r"`
	Task  string    `json:"t,omitempty"`
	Index int       `json:"i,omitempty"`
	Ended bool      `json:"e,omitempty"`
}

// encodePlace returns the token of a page that starts at a place.
func encodePlace(l paging.List, p place) string {
	text, _ := json.Marshal(placeToken{p.position.Start, p.position.RunID, p.task, p.index, p.ended}) // a time, numbers and names
	return l.Token(p.run, string(text))
}

// decodePlace returns the place that a page starts at, or nil if it is the first page.
func decodePlace(l paging.List, token string) (*place, error) {
	if token == "" {
		return nil, nil
	}
	run, text, err := l.Place(token)
	if err != nil {
		return nil, err
	}
	var at placeToken
	if json.Unmarshal([]byte(text), &at) != nil || at.Index < 0 || run == "" {
		return nil, paging.InvalidToken()
	}
	return &place{run, paging.Position{Start: at.Start, RunID: at.RunID}, at.Task, at.Index, at.Ended}, nil
}
