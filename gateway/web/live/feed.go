package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// feed has the contents of one view. Its methods may be called from several goroutines at once.
type feed struct {
	name   string // in versions
	cancel context.CancelFunc

	mu        sync.Mutex
	followers int // owned by Feeds
	number    int // of the content
	content   *Content
	// blockChanged and listChanged are the numbers of the contents that brought what blocks and lists are now.
	blockChanged, listChanged map[string]int
	titleChanged              int
	shapeChanged              int
	changed                   chan struct{} // closed with the next content, or the end
	err                       error         // why the feed has ended; io.EOF: the content stays
	// encoded is the last update that was made, which most followers need: from the number of encodedFrom.
	encoded     []byte
	encodedFrom int
}

func newFeed(name string, cancel context.CancelFunc) *feed {
	return &feed{
		name: name, cancel: cancel, changed: make(chan struct{}), blockChanged: map[string]int{}, listChanged: map[string]int{}, encodedFrom: -1,
	}
}

// run reads the source until ctx ends.
func (f *feed) run(ctx context.Context, open Opener) {
	source, err := open(ctx)
	if err != nil {
		f.finish(err)
		return
	}
	defer source.Close()
	for {
		content, err := source.Next(ctx)
		if content != nil {
			f.publish(content)
		}
		if err != nil {
			f.finish(err)
			return
		}
	}
}

// publish makes a content the present one. Nothing happens if it is the same as before.
func (f *feed) publish(c *Content) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, isChanged := f.number+1, f.content == nil
	for id, html := range c.Blocks {
		if f.content == nil || f.content.Blocks[id] != html {
			f.blockChanged[id], isChanged = n, true
		}
	}
	for id, items := range c.Lists {
		if f.content == nil || !slices.Equal(f.content.Lists[id], items) {
			f.listChanged[id], isChanged = n, true
		}
	}
	if f.content == nil || f.content.Title != c.Title {
		f.titleChanged, isChanged = n, true
	}
	if f.content == nil || f.content.Shape != c.Shape {
		f.shapeChanged, isChanged = n, true
	}
	if !isChanged {
		return
	}
	gone := func(id string, _ int) bool { return c.Blocks[id] == "" && c.Lists[id] == nil }
	maps.DeleteFunc(f.blockChanged, gone)
	maps.DeleteFunc(f.listChanged, gone)
	f.content, f.number, f.encoded, f.encodedFrom = c, n, nil, -1
	close(f.changed)
	f.changed = make(chan struct{})
}

// finish ends the feed.
func (f *feed) finish(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	close(f.changed)
}

// state is what a feed has at a time.
type state struct {
	content *Content // nil: none yet
	version string
	number  int
	changed <-chan struct{}
	err     error
}

func (f *feed) state() state {
	f.mu.Lock()
	defer f.mu.Unlock()
	return state{f.content, f.version(), f.number, f.changed, f.err}
}

func (f *feed) version() string { return f.name + "." + strconv.Itoa(f.number) }

// numberOf returns the number of a content of this feed by its version, or 0.
func (f *feed) numberOf(version string) int {
	name, text, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(text)
	if name != f.name || err != nil || n < 0 {
		return 0
	}
	return n
}

// update is what is sent of a view.
type update struct {
	Version string              `json:"version"`
	Title   string              `json:"title,omitempty"`
	Shape   *string             `json:"shape,omitempty"` // of the content, if it may be another one
	Blocks  map[string]string   `json:"blocks,omitempty"`
	Lists   map[string][]string `json:"lists,omitempty"`
}

// since returns what has changed since a content, as JSON, with the number of the content that it leads to; nil if nothing
// has.
func (f *feed) since(number int) ([]byte, int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.content == nil || number == f.number {
		return nil, f.number, nil
	}
	if f.encodedFrom == number {
		return f.encoded, f.number, nil
	}
	u := update{Version: f.version(), Blocks: map[string]string{}, Lists: map[string][]string{}}
	for id, at := range f.blockChanged {
		if at > number {
			u.Blocks[id] = f.content.Blocks[id]
		}
	}
	for id, at := range f.listChanged {
		if at > number {
			u.Lists[id] = f.content.Lists[id]
		}
	}
	if f.titleChanged > number {
		u.Title = f.content.Title
	}
	if f.shapeChanged > number {
		u.Shape = &f.content.Shape
	}
	text, err := json.Marshal(u)
	if err != nil {
		return nil, 0, fmt.Errorf("encode an update: %w", err)
	}
	f.encoded, f.encodedFrom = text, number
	return text, f.number, nil
}

// hasSettled reports whether a feed has ended because its content stays.
func (s state) hasSettled() bool { return errors.Is(s.err, io.EOF) }
