// Package web is the page of the gateway: the fleet, its runs, and why things are as they are, for people with a browser.
//
//	GET /, /ui/...        view ──> feed (live) ──> template ──> HTML, readable without script
//	GET /ui/live          the stream of a browser: updates of all views that its tabs show
//	POST /ui/actions/...  a call of a service, with the proof that the form is ours
//	GET /ui/assets/...    style and script, which are plain files
//
// Everything is read and done by calls of the services, as the caller, so that roles, limits and the audit are those of all
// doors. A view is a line of the table in views.go: a pattern, and a function that opens a source of its data. Its template
// lies in templates/. What changes while people look is a block (Page.Live) or a list of blocks (Page.Rows). Nothing in a
// block depends on the time at which it is rendered; the script keeps times current.
//
// Every answer forbids scripts and styles other than those of the gateway itself. html/template escapes what users have
// chosen.
//
// Of this module it may import proto, drawing/graph, drawing/report, drawing/svg, drawing/timeline, drawing/words, gateway/auth,
// gateway/edge, gateway/eventstream, gateway/inprocess, gateway/rpcerror, workflows/cron, workflows/definition, workflows/names,
// workflows/nearest and workflows/phrase.
package web
