package audit

import (
	"context"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// loginAction is the name of an SSH login in the audit.
const loginAction = "SSH login"

// RecordLogin records that the caller of ctx has logged in to a task of a run over SSH. It returns once the entry is stored,
// or after maxWait.
func (r *Recorder) RecordLogin(ctx context.Context, address, run, task string) {
	e := newEntry(ctx, loginAction, address, "")
	addObject(e, "run", run)
	if task != "" {
		addObject(e, "task", task)
	}
	e.Result = v1.AuditOK
	r.Record(ctx, e)
}

// NoteRefusedLogin records the refusal of an SSH client, with the user name that it claimed and the fingerprint of its key.
func (r *Recorder) NoteRefusedLogin(ctx context.Context, address, user, fingerprint string, err error) {
	e := newEntry(ctx, loginAction, address, "")
	addObject(e, "user", user)
	addObject(e, "key", fingerprint)
	setResult(e, connect.NewError(connect.CodePermissionDenied, err))
	r.Note(e)
}
