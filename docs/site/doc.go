// Package site reads pages of Markdown and makes a static site of them.
//
//	Parse ──> Page: headings, links, fences ──> Render: HTML, style and pictures by path ──> Handler
//
// Every link between pages is relative, so the site works below any path and from a folder. It needs no script. Text outside
// of the folder of the pages, such as the changelog, is not part of the site: a link to it becomes plain text.
//
// It is pure but for Handler, and may import drawing/svg.
package site
