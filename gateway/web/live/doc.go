// Package live keeps the views of open pages up to date.
//
//	Source ── Content ──> feed ──> what has changed ──> Stream, one a browser
//	                       │
//	                       └── one a view and kind of caller, however many look at it
//
// A view consists of blocks, which are elements with an id, and lists, which are elements whose children are blocks. A feed
// compares each content with the previous one and sends the changed blocks to its followers, encoded once. A version, the
// name of a feed and a number, identifies the content that a follower has. A follower with a version of another feed, for
// example from before a restart of the gateway, receives everything.
//
// A feed without followers ends after a short delay, so that the stream of a page finds the feed that rendered the page.
//
// Of this module it may import gateway/eventstream.
package live
