package tasklist

import (
	"encoding/json"
	"time"

	"switchyard/gateway/paging"
)

// place is a position in the list of tasks: a run with its position in the list of runs, and a task or instance in it.
type place struct {
	run      string
	position paging.Position // zero if the request names the run
	task     string          // "" for the first task
	index    int             // of the instance
	ended    bool            // whether the place is after the last task of the run
}

// placeToken is the part of a token that holds a place except its run.
type placeToken struct {
	Start time.Time `json:"s"`
	RunID string    `json:"r"`
	Task  string    `json:"t,omitempty"`
	Index int       `json:"i,omitempty"`
	Ended bool      `json:"e,omitempty"`
}

// encodePlace returns the token of a page that starts at a place.
func encodePlace(l paging.List, p place) string {
	text, _ := json.Marshal(placeToken{p.position.Start, p.position.RunID, p.task, p.index, p.ended}) // a time, numbers and names cannot fail
	return l.Token(p.run, string(text))
}

// decodePlace returns the place at which a page starts, or nil for the first page.
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
