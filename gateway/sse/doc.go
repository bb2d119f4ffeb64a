// Package sse serves streams of server-sent events, for browsers (EventSource) and for `curl -N`.
//
//	GET /v1/runs/{id}/events                 the events of a run, until it has ended
//	GET /v1/runs/{id}/logs                   what its tasks print
//	GET /v1/runs/{id}/tasks/{task}/logs      what one task prints, or one instance
//	GET /v1/events                           the events of all runs, without an end
//
// Each path is also served without /v1. A request gets a stream if it has follow=true or accepts text/event-stream; any other
// request gets the list that REST serves under the path. {id} may be a prefix, or "last" for the run that the caller submitted last. A client that reconnects should use the
// whole id, because "last" may have become another run.
//
// # Every stream
//
// The response starts immediately with the headers and a retry line. An error that is known before (an unknown run, an invalid
// parameter, too many streams) is a response with its status and {"code", "message", "details"}; browsers do not retry such a
// request. After 15 s without an event the gateway sends a comment. It drops a client that accepts no data for 30 s, and buffers
// at most 64 KiB for it meanwhile. A stream that ends without the event `end` was interrupted, because the gateway shuts down or
// the run cannot be read at the moment, as a comment explains. The client then reconnects to any gateway with the header
// Last-Event-ID, and the stream resumes exactly after that event. Browsers do so on their own; programs may send the parameter
// lastEventId instead. An id that no gateway has sent is InvalidArgument. The end event has an id too: a client that reconnects
// with it gets 204, which tells browsers to stop.
//
// # Events of a run
//
//	event: completed
//	id: 0-12
//	data: {"at":"2026-01-31T12:00:00Z","task":"build","event":"completed","node":"n-1",...}
//
// The name is Event.event, and the data is an Event as in the lists of REST. Events come in the order in which the run learns of
// them, generation by generation, each exactly once. The id is Event.id. In a run with a fan-out of over 500 instances, whose
// parts keep their own events, the id also records the position in the other parts; it is omitted if it would exceed 6 KiB (some
// 200 parts). A stream of such a run may also resume from a plain Event.id, but then repeats events of the other parts.
//
// The run learns of the start of an attempt when the attempt ends. Until then, a start that its heartbeat reports is sent as the
// event `running`, without an id and with the data of the event `started` that follows later with an id. `running` may be
// repeated when a client reconnects. It is a hint for display and should not be counted.
//
// Parameters: task, event, node, since and until, as in ListRunEvents. The filter treats the event `running` as `started`.
//
//	event: end
//	id: 0-end
//	data: {"run":"ci-0k3","generation":0,"state":"failed","reason":"task_failed","error":"task build failed"}
//
// A run that is retried after its end has a new generation, which ended streams do not receive. A client that reconnects with the
// id of the previous generation's end event gets the new events: 204 is sent only as long as the run has not been retried.
//
// # Events of all runs
//
// A stream begins with the events from now on, or from the parameter since (at most an hour ago). Its events are those of single
// runs, without `running` and `end`; the data names the run. The events of one run come in order; there is no order between runs.
// The other parameters are those of a single run.
//
// The id records the position in the feed of this gateway, and a time before which every event has been sent. At the same gateway
// a client resumes exactly. At another gateway, or after a pause longer than the feed keeps events, delivery is at least once:
// events of the minute before that time are repeated, and (run, id) in the data identifies duplicates. A client that was away for
// more than an hour gets one event `gap` {since, until, reason} and continues from now on; GET /v1/events?since=&until= lists the
// omitted events.
//
// An event appears within about a second while at most 100 runs are open, and within n/100 seconds while n runs are open. Beyond
// 1,000 open runs, the oldest are not followed; their events appear when they end, within the same limits.
//
// # Logs
//
//	event: log
//	id: 3~W3sidCI6ImJ1aWxkIiwiYyI6MX1d
//	data: {"task":"build","generation":0,"attempt":0,"stream":"stdout","time":"...","text":"ok","partial":false,"notice":false}
//
// Each event is a line without its line end. A line that the task prints in pieces, or that is longer than a piece of the log,
// comes in several events; `partial` is true in all but the last. Invalid UTF-8, including a rune that is split between pieces,
// is replaced by U+FFFD in `text`, and `bytes` holds the original line in base64. `notice` marks messages of Switchyard that the
// task has not printed. The event `missing` {task, attempt, node, partial} reports a log that should be in the store but is not, or
// lacks its end if `partial` is true. A stream that follows waits up to a minute for such a log. `end` has {run, task}.
//
// The id records the position in every log of the stream, so it grows with the number of logs. If it would exceed 6 KiB (more
// than about 100 tasks), lines have no id, and a client that reconnects gets the lines since the last id again. Such runs are
// better followed task by task.
//
// Parameters: task, attempt, generation, stream, since and children, as in StreamRunLogs; follow=false ends the stream after the
// current output; tail=N begins with the last N lines of each task (at most 1,000).
//
// # Cost
//
//	Poller of the run ──> runFeed ──> a place in its entries for each follower ──> batch ──> stream
//	                         │
//	                         └── a Tail for each follower that has fallen behind, or begins farther back
//
// One poller and one feed read a run for any number of followers. The feed encodes each event once and keeps the newest 4,096
// events, or 4 MiB; slower followers read from the store. Logs are read separately for each follower.
//
// One feed per gateway reads the events of all runs, while it has followers and for a minute afterwards. Each second it makes two
// visibility queries, checks at most 100 open runs, 8 concurrently, and reads the events of those that have changed. Events from
// before a client connected are read for that client, for two clients at a time.
//
// Of this module it may import proto, gateway/auth, gateway/edge, gateway/eventstream, gateway/rpcerror, gateway/runevents, gateway/runindex, gateway/runview,
// activities/store/storekey and workflows/names.
package sse
