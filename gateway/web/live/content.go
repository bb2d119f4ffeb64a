package live

import "context"

// Content is what a view shows at a time. It must not be changed.
type Content struct {
	// HTML is the whole view, for a page that is opened.
	HTML string
	// Title of the page.
	Title string
	// Blocks are the elements that may change, by id, as HTML with the element itself. No block lies in another one.
	Blocks map[string]string
	// Shape distinguishes contents that blocks cannot turn into one another: a page with another shape is loaded again.
	Shape string
	// Lists have the ids of the blocks that are the children of an element, by its id. A block that belongs to no list is
	// always there.
	Lists map[string][]string
}

// Source makes the contents of a view. One goroutine uses it.
type Source interface {
	// Next returns the content: at once when it is called first, and then once it may have changed. An error ends the feed;
	// io.EOF ends it because the content will not change any more.
	Next(ctx context.Context) (*Content, error)
	// Close gives back what the source holds.
	Close()
}

// Opener opens the source of a view. ctx ends with the feed.
type Opener func(ctx context.Context) (Source, error)
