package live

import "context"

// Content is the state of a view at a time. It is immutable.
type Content struct {
	// HTML is the whole view, for the initial page.
	HTML string
	// Title is the title of the page.
	Title string
	// Blocks holds the HTML of the elements that may change, by element id, including the element itself. Blocks do not
	// nest.
	Blocks map[string]string
	// Shape identifies the page structure. Block updates cannot turn one shape into another, so a change of shape reloads
	// the page.
	Shape string
	// Lists maps the id of an element to the ids of the blocks that are its children. A block outside all lists is always
	// present.
	Lists map[string][]string
}

// Source produces the contents of a view. It is used by a single goroutine.
type Source interface {
	// Next returns the content: immediately on the first call, then whenever it may have changed. An error ends the feed;
	// io.EOF ends it because the content is final.
	Next(ctx context.Context) (*Content, error)
	// Close releases the resources of the source.
	Close()
}

// Opener opens the source of a view. ctx is cancelled when the feed ends.
type Opener func(ctx context.Context) (Source, error)
