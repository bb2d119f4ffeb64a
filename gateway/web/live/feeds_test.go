package live

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// scripted is a source that returns the contents a test sends.
type scripted struct {
	contents chan *Content
	closed   chan struct{}
}

func newScripted() *scripted {
	return &scripted{make(chan *Content, 10), make(chan struct{})}
}

func (s *scripted) Next(ctx context.Context) (*Content, error) {
	select {
	case c, ok := <-s.contents:
		if !ok {
			return nil, io.EOF
		}
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *scripted) Close() { close(s.closed) }

func (s *scripted) open(context.Context) (Source, error) { return s, nil }

func content(title string, pairs ...string) *Content {
	c := &Content{HTML: title, Title: title, Blocks: map[string]string{}, Lists: map[string][]string{"list": {}}}
	for pair := range slices.Chunk(pairs, 2) {
		c.Blocks[pair[0]] = pair[1]
		c.Lists["list"] = append(c.Lists["list"], pair[0])
	}
	return c
}

// follow returns a channel with the updates of a view.
func follow(t *testing.T, fs *Feeds, open Opener, version string) <-chan update {
	updates := make(chan update, 10)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = fs.Follow(ctx, "view", open, version, func(text []byte) error {
			var u update
			if err := json.Unmarshal(text, &u); err != nil {
				t.Error(err)
			}
			updates <- u
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return updates
}

func await(t *testing.T, updates <-chan update) update {
	t.Helper()
	select {
	case u := <-updates:
		return u
	case <-time.After(30 * time.Second):
		t.Fatal("no update comes")
		panic("unreachable")
	}
}

func TestFollowerReceivesOnlyChanges(t *testing.T) {
	fs, s := NewFeeds(), newScripted()
	defer fs.Close()
	s.contents <- content("one", "a", "<p>1</p>", "b", "<p>1</p>")
	whole := await(t, follow(t, fs, s.open, "")) // this follower keeps the feed open
	first, version, err := fs.Load(t.Context(), "view", s.open)
	if err != nil || first.HTML != "one" {
		t.Fatal(first, err)
	}
	if len(whole.Blocks) != 2 || whole.Version != version {
		t.Errorf("who has nothing gets %v", whole)
	}
	updates := follow(t, fs, s.open, version)
	s.contents <- content("one", "a", "<p>1</p>", "b", "<p>1</p>") // unchanged
	s.contents <- content("one", "a", "<p>1</p>", "b", "<p>2</p>")
	if u := await(t, updates); len(u.Blocks) != 1 || u.Blocks["b"] != "<p>2</p>" || len(u.Lists) != 0 || u.Title != "" {
		t.Errorf("%v", u)
	}
	s.contents <- content("two", "b", "<p>2</p>")
	if u := await(t, updates); len(u.Blocks) != 0 || !slices.Equal(u.Lists["list"], []string{"b"}) || u.Title != "two" {
		t.Errorf("%v", u)
	}
	if u := await(t, follow(t, fs, s.open, version)); u.Blocks["b"] != "<p>2</p>" || u.Blocks["a"] != "" || u.Title != "two" {
		t.Errorf("who was away gets %v", u)
	}
}

func TestFollowersShareOneSource(t *testing.T) {
	fs, s, opened := NewFeeds(), newScripted(), 0
	defer fs.Close()
	open := func(context.Context) (Source, error) { opened++; return s, nil }
	s.contents <- content("one", "a", "<p>1</p>")
	for range 3 {
		await(t, follow(t, fs, open, ""))
	}
	if _, _, err := fs.Load(t.Context(), "view", open); err != nil {
		t.Fatal(err)
	}
	if opened != 1 || fs.Len() != 1 {
		t.Errorf("%d sources were opened, %d feeds", opened, fs.Len())
	}
}

func TestErrorOfSourceEndsFollowers(t *testing.T) {
	fs := NewFeeds()
	defer fs.Close()
	gone := errors.New("the run has gone")
	err := fs.Follow(t.Context(), "view", func(context.Context) (Source, error) { return nil, gone }, "", func([]byte) error { return nil })
	if !errors.Is(err, gone) {
		t.Error(err)
	}
	for deadline := time.Now().Add(30 * time.Second); fs.Len() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a feed that has failed stays")
		}
	}
}

func TestSettledViewIsSentOnce(t *testing.T) {
	fs, s := NewFeeds(), newScripted()
	defer fs.Close()
	s.contents <- content("one", "a", "<p>1</p>")
	close(s.contents)
	sent := 0
	if err := fs.Follow(t.Context(), "view", s.open, "", func([]byte) error { sent++; return nil }); err != nil || sent != 1 {
		t.Errorf("%d updates, %v", sent, err)
	}
}

func TestSourceIsClosedWithItsLastFollower(t *testing.T) {
	fs, s := NewFeeds(), newScripted()
	s.contents <- content("one", "a", "<p>1</p>")
	if _, _, err := fs.Load(t.Context(), "view", s.open); err != nil {
		t.Fatal(err)
	}
	fs.Close()
	select {
	case <-s.closed:
	case <-time.After(30 * time.Second):
		t.Fatal("the source stays open")
	}
	if _, _, err := fs.Load(t.Context(), "view", s.open); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestRenewReloadsTheView(t *testing.T) {
	fs := NewFeeds()
	defer fs.Close()
	old, fresh := newScripted(), newScripted()
	old.contents <- content("old")
	fresh.contents <- content("new")
	updates := follow(t, fs, old.open, "")
	if u := await(t, updates); u.Title != "old" {
		t.Fatalf("the follower gets %v", u)
	}
	if c, _, err := fs.Load(t.Context(), "view", old.open); err != nil || c.Title != "old" {
		t.Fatalf("the first content is %v, %v", c, err)
	}
	fs.Renew("view")
	if c, _, err := fs.Load(t.Context(), "view", fresh.open); err != nil || c.Title != "new" {
		t.Errorf("the renewed content is %v, %v", c, err)
	}
	old.contents <- content("later")
	if u := <-updates; u.Title != "later" {
		t.Errorf("who follows gets %v", u)
	}
}
