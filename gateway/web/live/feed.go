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

// feed holds the contents of one view. It is safe for concurrent use.
type feed struct {
	name   string // prefix of its versions
	cancel context.CancelFunc

	mu        sync.Mutex
	followers int // owned by Feeds
	number    int // of the current content
	content   *Content
	// blockChanged and listChanged hold the number of the content that last changed each block and list.
	blockChanged, listChanged map[string]int
	titleChanged              int
	shapeChanged              int
	changed                   chan struct{} // closed by the next content or the end
	err                       error         // why the feed has ended; io.EOF means that the content is final
	// encoded caches the last encoded update, starting from the number encodedFrom; most followers need the same one.
	encoded     []byte
	encodedFrom int
}

func newFeed(name string, cancel context.CancelFunc) *feed {
	return &feed{
		name: name, cancel: cancel, changed: make(chan struct{}), blockChanged: map[string]int{}, listChanged: map[string]int{}, encodedFrom: -1,
	}
}

// run publishes the contents of the source until it ends or ctx is cancelled.
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

// publish sets the current content and wakes the followers. An unchanged content is ignored.
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

// finish ends the feed with an error.
func (f *feed) finish(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	close(f.changed)
}

// state is a snapshot of a feed.
type state struct {
	content *Content // nil if there is none yet
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

// numberOf returns the content number in a version of this feed, or 0 for a foreign or malformed version.
func (f *feed) numberOf(version string) int {
	name, text, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(text)
	if name != f.name || err != nil || n < 0 {
		return 0
	}
	return n
}

// update is the JSON message that updates a view.
type update struct {
	Version string              `json:"version"`
	Title   string              `json:"title,omitempty"`
	Shape   *string             `json:"shape,omitempty"` // set if the shape has changed
	Blocks  map[string]string   `json:"blocks,omitempty"`
	Lists   map[string][]string `json:"lists,omitempty"`
}

// since returns the changes since a content as JSON, or nil if there are none, and the number of the content that they lead
// to.
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

// hasSettled reports whether the feed has ended with a final content.
func (s state) hasSettled() bool { return errors.Is(s.err, io.EOF) }
