// Package sse answers requests with streams of server-sent events, for browsers (EventSource) and for `curl -N`.
//
//	GET /v1/runs/{id}/events                 the events of a run, until it has ended
//	GET /v1/runs/{id}/logs                   what its tasks print
//	GET /v1/runs/{id}/tasks/{task}/logs      what one task prints, or one instance
//	GET /v1/events                           the events of all runs, without an end
//
// Each path is also served without /v1. A request gets a stream if it has follow=true or accepts text/event-stream; any
// other one gets the list that REST has under the path. {id} may be a prefix or "last"; a client that returns should use
// the whole id, because "last" may be another run by then.
//
// # Every stream
//
// The answer begins at once with the headers and a retry line. An error that is known before (an unknown run, a bad
// parameter, too many streams) is an answer with its status and {"code", "message", "details"}; a browser does not try such
// a request again. After 15 s without an event comes a comment. A client that takes nothing for 30 s is dropped; the gateway
// holds at most 64 KiB for it meanwhile. A stream that ends without the event `end` was interrupted (the gateway shuts
// down, or the run cannot be read now, as a comment says): the client returns with the header Last-Event-ID, to this or
// to another gateway, and the stream continues exactly after that event. A browser does that by itself; a program may send
// the parameter lastEventId instead. An id that the gateway has not sent is InvalidArgument. The end event has an id, too:
// who returns with it is answered 204, which makes a browser stay away.
//
// # Events of a run
//
//	event: completed
//	id: 0-12
//	data: {"at":"2026-01-31T12:00:00Z","task":"build","event":"completed","node":"n-1",...}
//
// The name is the word Event.event, the data an Event as the lists of REST have it. Events come in the order in which the
// run has learned of them, all generations one after the other, each exactly once. The id is Event.id; in a run with a
// fan-out of over 500 instances, whose parts keep events of their own, it also says how far the other parts were read, and
// is left out where it would be longer than 6 KiB (some 200 parts). Such a run may be continued from a plain Event.id, too,
// but repeats events of the other parts then.
//
// The run learns of the start of an attempt when the attempt ends. What its heartbeat reports before is sent as the event
// `running`, without an id, with the data of the event `started` that follows with an id. `running` may be repeated when a
// client returns; it is a hint to show, not an event to count.
//
// Parameters: task, event, node, since and until, as in ListRunEvents. The event `running` counts as `started`.
//
//	event: end
//	id: 0-end
//	data: {"run":"ci-0k3","generation":0,"state":"failed","reason":"task_failed","error":"task build failed"}
//
// A run that is retried after its end has another generation, which ended streams do not get. Who returns with the id of
// the end of the generation before gets its events: 204 is only sent while the run has not been retried.
//
// # Events of all runs
//
// A stream begins with what happens from now on, or from the parameter since (at most an hour ago). It has events as those of
// one run are, without `running` and without an end; the data names the run. The events of one run come in its order; between
// runs there is none. The other parameters are as for one run.
//
// The id says how far the feed of this gateway was read, and the time before which everything has been sent. At the same
// gateway a client continues exactly; at another one, or when it has been away for longer than the feed keeps events, at
// least once: what happened in the minute before that time is sent again, and (run, id) in the data tell events apart. A
// client that has been away for more than an hour gets one event `gap` {since, until, reason}, whose events
// GET /v1/events?since=&until= lists, and continues from now on.
//
// An event appears within about a second while at most 100 runs are open, and within n/100 seconds while n are. Of more than
// 1,000 open runs the oldest are not followed; their events appear when they end, within the bounds above.
//
// # Logs
//
//	event: log
//	id: 3~W3sidCI6ImJ1aWxkIiwiYyI6MX1d
//	data: {"task":"build","generation":0,"attempt":0,"stream":"stdout","time":"...","text":"ok","partial":false,"notice":false}
//
// Each event is a line without its end. A line that the task has printed in pieces, or that is longer than a piece of the
// log, comes in several events: `partial` is true in all but the last. Bytes that are no UTF-8, and a rune that is cut by
// the end of a piece, are U+FFFD in `text`, and the line as it was printed is in `bytes`, in base64. `notice` marks what
// Switchyard says and the task has not printed. The event `missing` {task, attempt, node} says that the store has nothing of
// a log that should be there. `end` has {run, task}.
//
// The id says how far every log of the stream has been sent, so that it grows with the number of logs. Beyond 6 KiB (more
// than about 100 tasks) lines have no id: a client that returns gets what it has seen since the last id again. Follow single
// tasks then.
//
// Parameters: task, attempt, generation, stream, since and children, as in StreamRunLogs; follow=false ends the stream
// after what there is; tail=N begins with the last N lines of each task (at most 1,000).
//
// # Cost
//
//	Poller of the run ──> runFeed ──> a place in its entries for each follower ──> batch ──> stream
//	                         │
//	                         └── a Tail for each follower that has fallen behind, or begins farther back
//
// A run whose events are followed is read by one poller and one feed, however many followers it has. The feed encodes each
// event once and keeps the newest 4,096, or 4 MiB; who is slower reads from the store again. Logs are read by each follower.
//
// The events of all runs are read by one feed a gateway, while it has followers and for a minute afterwards. Each second it
// makes two searches of visibility, looks at 100 open runs at most, 8 at once, and reads the events of those that have
// changed. What happened before a client came is read for that client, for two clients at a time.
//
// Of this module it may import proto, gateway/auth, gateway/edge, gateway/eventstream, gateway/rpcerror, gateway/runevents, gateway/runindex, gateway/runview,
// activities/store/storekey and workflows/names.
package sse
