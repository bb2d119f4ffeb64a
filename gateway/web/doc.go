// Package web is the web page of the gateway. It shows people the fleet and its runs, and explains their states.
//
//	GET /, /ui/...        view ──> feed (live) ──> template ──> HTML, readable without script
//	GET /ui/live          the stream of a browser: updates of all views that its tabs show
//	POST /ui/actions/...  a call of a service, with the proof that the form is ours
//	GET /ui/assets/...    style and script, which are plain files
//	GET /docs/...         the documentation (docs/site), for any caller
//
// The page reads and changes everything through service calls in the name of the caller, so roles, limits and the audit log
// apply as to any other client. A view is a row of the table in views.go: a pattern, and a function that opens a source of
// its data. Its template is in templates/. Parts that change while people look are blocks (Page.Live) or lists of blocks
// (Page.Rows). The content of a block must not depend on the time at which it is rendered; the script keeps times current.
//
// Every response forbids scripts and styles other than those of the gateway itself. html/template escapes user-supplied
// text. Only the preview of a file of an artifact has a policy of its own (previewPolicy).
//
// Of this module it may import proto, docs, docs/site, drawing/graph, drawing/report, drawing/svg, drawing/timeline, drawing/words, gateway/auth,
// gateway/edge, gateway/eventstream, gateway/inprocess, gateway/rpcerror, workflows/cron, workflows/definition, workflows/names,
// workflows/nearest and workflows/phrase.
package web
