package audit

import (
	"context"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// loginAction is what a login by SSH is called in the audit.
const loginAction = "SSH login"

// RecordLogin records that the caller of ctx has logged in by SSH to a task of a run, and returns once the entry is stored, or
// after some seconds.
func (r *Recorder) RecordLogin(ctx context.Context, address, run, task string) {
	e := newEntry(ctx, loginAction, address, "")
	addObject(e, "run", run)
	if task != "" {
		addObject(e, "task", task)
	}
	e.Result = v1.AuditOK
	r.Record(ctx, e)
}

// NoteRefusedLogin records that an SSH client was refused which has claimed a user name, with the fingerprint of its key.
func (r *Recorder) NoteRefusedLogin(ctx context.Context, address, user, fingerprint string, err error) {
	e := newEntry(ctx, loginAction, address, "")
	addObject(e, "user", user)
	addObject(e, "key", fingerprint)
	end(e, connect.NewError(connect.CodePermissionDenied, err))
	r.Note(e)
}
