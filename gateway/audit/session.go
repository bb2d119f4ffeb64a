package audit

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// Session is a session that is open, has ended or was refused.
type Session struct {
	// Kind is such as "exec".
	Kind string
	// What it was about; empty: not known.
	Run, Task, Node, Path string
	Port                  uint32
	// From is the address of the client.
	From string
	// Lasted is how long it was open, Sent and Received are what the client has sent and was sent, in bytes.
	Lasted         time.Duration
	Sent, Received int64
	// Err is why there was none.
	Err error
}

// openedSuffix is what the entry about a session that has been opened is called after its action.
const openedSuffix = " opened"

// RecordOpenedSession adds an entry about a session of the caller of ctx that has been opened, and returns once the entry is
// stored, or after some seconds. One that connects to a port does not wait: a page of the web opens very many.
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

// RecordSession adds an entry about a session of the caller of ctx that has ended or was refused, and does not wait for the
// store.
func (r *Recorder) RecordSession(ctx context.Context, s Session) {
	e := sessionEntry(ctx, s)
	end(e, s.Err)
	if e.GetResult() != v1.AuditOK && isRefusal(rpcerror.CodeOf(s.Err)) {
		r.Note(e)
		return
	}
	if s.Err == nil {
		e.Lasted, e.SentBytes, e.ReceivedBytes = durationpb.New(s.Lasted), s.Sent, s.Received
	}
	r.add(e, maxPending)
}

// sessionEntry returns an entry about a session of the caller of ctx, without how it ended.
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
