// Package live keeps the views of a page current while people look at them.
//
//	Source ── Content ──> feed ──> what has changed ──> Stream, one a browser
//	                       │
//	                       └── one a view and kind of caller, however many look at it
//
// A view is cut into blocks, which are elements with an id, and lists, which are elements whose children are blocks. A feed
// compares each content with the one before and has the changed blocks for its followers, encoded once. A version says which
// content a follower has: the feed's own name and a number. To a follower with the version of another feed, of a gateway
// that has ended for example, everything is sent.
//
// A feed without followers ends after a moment, so that the stream of a page finds the feed that has rendered the page.
//
// Of this module it may import gateway/eventstream.
package live
