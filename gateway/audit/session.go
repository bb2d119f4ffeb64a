package audit

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// Session is a session that has ended, or that was refused.
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

// RecordSession adds an entry about a session of the caller of ctx, and does not wait for the store.
func (r *Recorder) RecordSession(ctx context.Context, s Session) {
	e := newEntry(ctx, "session "+s.Kind, s.From, "")
	for _, object := range []struct{ kind, name string }{{"run", s.Run}, {"task", s.Task}, {"node", s.Node}, {"path", s.Path}} {
		if object.name != "" {
			addObject(e, object.kind, object.name)
		}
	}
	if s.Port != 0 {
		addObject(e, "port", strconv.Itoa(int(s.Port)))
	}
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
