package taskrunner

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
)

// An attempt of an executor.Survivor outlives its worker. State.Dir holds what a later worker needs to continue
// the attempt, from before the attempt starts until it has been answered:
//
//	<state dir>/<hash of the attempt's id>.attempt   the recovery file, readable by its owner only
//	<state dir>/workspaces/attempt-*                 the attempts' directories
//
// The modification time of the file is that of the newest heartbeat that the server has acknowledged.

const (
	recoverySuffix   = ".attempt"
	survivorsFolder  = "workspaces"
	keepsakeVersion  = 1
	maxKeepsakeBytes = 16 << 20
)

// recoveryFile holds what a later worker needs to continue an attempt. The mutex of the attempt guards it.
type recoveryFile struct {
	path  string
	state recoveryState
	gone  bool
}

// recoveryState is the content of a recovery file.
type recoveryState struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// Token is the token of the activity that waits for the attempt, and Heartbeat its heartbeat time-out.
	Token     []byte        `json:"token"`
	Heartbeat time.Duration `json:"heartbeat"`
	// Queue is the task queue that delivered the attempt.
	Queue string `json:"queue"`
	// Request is the ExecuteRequest. Spec is the spec of the attempt with its templates rendered.
	Request   json.RawMessage `json:"request"`
	Spec      json.RawMessage `json:"spec"`
	TakenUpAt time.Time       `json:"takenUpAt"`
	// StartedAt is when the process started, or zero if it has not.
	StartedAt time.Time `json:"startedAt"`
	// Suspended is the total of past suspensions. SuspendedAt is when the current one began, or zero if there is none.
	Suspended   time.Duration `json:"suspended"`
	SuspendedAt time.Time     `json:"suspendedAt"`
	// Lasting is set when neither a lease nor a drain ends the attempt.
	Lasting bool `json:"lasting,omitempty"`
	// Entered is set while a session is open in the attempt. IdleSince is when the last session ended, or zero if none
	// has.
	Entered   bool      `json:"entered,omitempty"`
	IdleSince time.Time `json:"idleSince,omitzero"`
	// AloneUntil is until when the attempt may continue after its activity has left it, or zero if it has not.
	AloneUntil time.Time `json:"aloneUntil"`
	// Workspace is the name of the attempt's directory, and TempDir the path of its temporary directory.
	Workspace string `json:"workspace"`
	TempDir   string `json:"tempDir"`
}

// writeRecoveryFile writes the recovery file of an attempt that is about to start.
func (a *attempt) writeRecoveryFile(id string, spec *structpb.Struct, ws *workspace.Workspace) error {
	request, err := protojson.Marshal(a.req)
	if err != nil {
		return err
	}
	rendered, err := protojson.Marshal(spec)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := &recoveryFile{path: recoveryPath(a.node.State.Dir, id), state: recoveryState{
		Version: keepsakeVersion, ID: id, Token: a.token, Heartbeat: a.heartbeat, Queue: a.queue,
		Request: request, Spec: rendered, TakenUpAt: a.takenUpAt.AsTime(), Workspace: filepath.Base(ws.Dir()), TempDir: ws.TempDir(),
	}}
	if a.left == nil { // the attempt was detached while it waited
		k.state.AloneUntil = time.Now().Add(a.alone)
	}
	a.node.State.guard()
	if err := k.write(); err != nil {
		return fmt.Errorf("note what a later worker needs of %s: %w", id, err)
	}
	a.recoveryFile = k
	a.claimFile.remove()
	return nil
}

// updateRecoveryFile changes the recovery file, if there is one. The caller holds mu.
func (a *attempt) updateRecoveryFile(change func(k *recoveryState)) {
	if a.recoveryFile == nil || a.recoveryFile.gone {
		return
	}
	change(&a.recoveryFile.state)
	if err := a.recoveryFile.write(); err != nil {
		a.node.Logger.Warn("an attempt would not outlive this worker", "run", a.req.GetRunId(), "task", a.members[0].name, "error", err)
	}
}

// suspend records that the attempt is suspended or resumed.
func (k *recoveryState) suspend(still bool) {
	switch {
	case still && k.SuspendedAt.IsZero():
		k.SuspendedAt = time.Now()
	case !still && !k.SuspendedAt.IsZero():
		k.Suspended, k.SuspendedAt = k.stoodStill(), time.Time{}
	}
}

// stoodStill returns the total time that the attempt has been suspended.
func (k *recoveryState) stoodStill() time.Duration {
	if k.SuspendedAt.IsZero() {
		return k.Suspended
	}
	return k.Suspended + time.Since(k.SuspendedAt)
}

// enter records that a session is open in the attempt, or that the last one has ended.
func (k *recoveryState) enter(open bool) {
	k.Entered, k.IdleSince = open, time.Now()
}

// idleFrom returns when the idle time of the attempt began. started is when its program started.
func (k *recoveryState) idleFrom(started time.Time) time.Time {
	switch {
	case k.Entered: // a session was open until the worker died
		return time.Now()
	case k.IdleSince.IsZero():
		return started
	}
	return k.IdleSince
}

// removeRecoveryFile removes the recovery file, unless this worker has left the attempt to a later one.
func (a *attempt) removeRecoveryFile() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recoveryFile != nil && !a.isLeft {
		a.recoveryFile.gone = true
		if err := os.Remove(a.recoveryFile.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.node.Logger.Warn("what a later worker would need of an attempt is not removed", "error", err)
		}
	}
}

// recordHeartbeat records that the server has acknowledged a heartbeat sent at an instant.
func (a *attempt) recordHeartbeat(sent executor.Instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recoveryFile != nil && !a.recoveryFile.gone {
		at := time.Now().Add(-executor.Now().Sub(sent))
		_ = os.Chtimes(a.recoveryFile.path, at, at) // if this fails, the file's earlier time is the safe side
	}
}

func recoveryPath(dir, id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(dir, fmt.Sprintf("%x", sum[:16])+recoverySuffix)
}

// write replaces the file atomically and keeps its modification time, which is that of the newest heartbeat.
func (k *recoveryFile) write() error {
	text, err := json.Marshal(k.state)
	if err != nil {
		return err
	}
	dir := filepath.Dir(k.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "new-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if info, e := os.Stat(k.path); e == nil && err == nil {
		err = os.Chtimes(f.Name(), info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = os.Rename(f.Name(), k.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
