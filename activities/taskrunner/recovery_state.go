package taskrunner

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/activities/heartbeat"
	v1 "switchyard/proto/switchyard/v1"
)

// recoveryState is the content of a recovery file.
type recoveryState struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// Token is the token of the activity that waits for the attempt, and Heartbeat the heartbeat time-out with which it began.
	Token     []byte             `json:"token"`
	Activity  heartbeat.Activity `json:"activity"`
	Heartbeat time.Duration      `json:"heartbeat"`
	// Lease is the raised time-out by which the lease of the attempt ends, or 0 if that is Heartbeat.
	Lease time.Duration `json:"lease,omitempty"`
	// Queue is the task queue that delivered the attempt.
	Queue string `json:"queue"`
	// Request is the ExecuteRequest. Spec is the spec of the attempt with its templates rendered.
	Request   json.RawMessage `json:"request"`
	Spec      json.RawMessage `json:"spec"`
	TakenUpAt time.Time       `json:"takenUpAt"`
	// StartedAt is when the process started, or zero if it has not.
	StartedAt time.Time `json:"startedAt"`
	// Suspended is the total of past suspensions. SuspendedAt is when the current one began, or zero while the attempt runs.
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
	// Workload is the v1.Workload that runs the attempt, or empty if it is unknown. located is the workload that write puts there, or nil.
	Workload json.RawMessage `json:"workload,omitempty"`
	located  *v1.Workload
}

// attend records which activity waits for the attempt.
func (k *recoveryState) attend(of activityRef) {
	k.Token, k.Activity, k.Heartbeat, k.Lease = of.token, of.Activity, of.heartbeat, 0
}

// inUse returns the heartbeat time-out by which the lease of the attempt ends.
func (k *recoveryState) inUse() time.Duration { return max(k.Lease, k.Heartbeat) }

// workload returns what runs the attempt, or nil if that is unknown.
func (k *recoveryState) workload() *v1.Workload {
	w := &v1.Workload{}
	if len(k.Workload) == 0 || protojson.Unmarshal(k.Workload, w) != nil {
		return nil
	}
	return w
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

// write replaces a file atomically and keeps its modification time, which is that of the newest heartbeat.
func (k *recoveryState) write(path string) error {
	if k.located != nil {
		k.Workload, _ = protojson.Marshal(k.located) // without it, Remove cannot help an engine that is away
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "new-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if info, e := os.Stat(path); e == nil && err == nil {
		err = os.Chtimes(f.Name(), info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
