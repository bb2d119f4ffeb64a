package audit

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// Session describes a session that was opened, has ended or was refused.
type Session struct {
	// Kind is the kind of session, such as "exec".
	Kind string
	// Run, Task, Node, Path and Port are the target of the session. Unknown ones are zero.
	Run, Task, Node, Path string
	Port                  uint32
	// From is the address of the client.
	From string
	// Lasted is the duration of the session. Sent and Received are the bytes that the client sent and received.
	Lasted         time.Duration
	Sent, Received int64
	// Err is the error if the session could not be opened.
	Err error
}

// openedSuffix follows the action in the entry about an opened session.
const openedSuffix = " opened"

// RecordOpenedSession records that the caller of ctx has opened a session. It returns once the entry is stored, or after
// maxWait. For port connections it does not wait, because a web page opens very many.
func (r *Recorder) RecordOpenedSession(ctx context.Context, s Session) {
	e := sessionEntry(ctx, s)
	e.Action += openedSuffix
	e.Result = v1.AuditOK
	if s.Kind == "connect" {
		r.add(e, maxPending)
		return
	}
	r.Record(ctx, e)
}

// RecordSession records that a session of the caller of ctx has ended or was refused. It does not wait for the store.
func (r *Recorder) RecordSession(ctx context.Context, s Session) {
	e := sessionEntry(ctx, s)
	setResult(e, s.Err)
	if e.GetResult() != v1.AuditOK && isRefusal(rpcerror.CodeOf(s.Err)) {
		r.Note(e)
		return
	}
	if s.Err == nil {
		e.Lasted, e.SentBytes, e.ReceivedBytes = durationpb.New(s.Lasted), s.Sent, s.Received
	}
	r.add(e, maxPending)
}

// sessionEntry returns an entry about a session of the caller of ctx, without its result.
func sessionEntry(ctx context.Context, s Session) *v1.AuditEntry {
	e := newEntry(ctx, "session "+s.Kind, s.From, "")
	for _, object := range []struct{ kind, name string }{{"run", s.Run}, {"task", s.Task}, {"node", s.Node}, {"path", s.Path}} {
		if object.name != "" {
			addObject(e, object.kind, object.name)
		}
	}
	if s.Port != 0 {
		addObject(e, "port", strconv.Itoa(int(s.Port)))
	}
	return e
}
