package taskrunner

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
)

// An attempt whose executor can Survive outlives its worker. State.Dir holds what a later worker needs to continue the
// attempt, from before the attempt starts until it has been answered:
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

// recoveryFile holds what a later worker needs to continue an attempt. Until create has written the file, its methods change only
// what create will write. mu protects the fields below it.
type recoveryFile struct {
	logger    *slog.Logger
	run, task string // of the attempt, for the log

	mu    sync.Mutex
	path  string // "" if the file has not been written
	state recoveryState
	// beatAt is when the newest acknowledged heartbeat was sent, or zero.
	beatAt time.Time
	gone   bool
	// isLeft is set when this worker leaves the running attempt to a later one.
	isLeft bool
}

// create completes the state and writes the file.
func (k *recoveryFile) create(path string, complete func(k *recoveryState)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	complete(&k.state)
	if err := k.state.write(path); err != nil {
		return err
	}
	k.path = path
	if !k.beatAt.IsZero() {
		return os.Chtimes(path, k.beatAt, k.beatAt)
	}
	return nil
}

// isWritten reports whether the attempt has a recovery file.
func (k *recoveryFile) isWritten() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.path != ""
}

// update changes the file.
func (k *recoveryFile) update(change func(k *recoveryState)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.state)
	if k.path == "" || k.gone {
		return
	}
	if err := k.state.write(k.path); err != nil {
		k.logger.Warn("an attempt would not outlive this worker", "run", k.run, "task", k.task, "error", err)
	}
}

// recordHeartbeat records that the server has acknowledged a heartbeat sent at an instant.
func (k *recoveryFile) recordHeartbeat(sent executor.Instant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.beatAt = time.Now().Add(-executor.Now().Sub(sent))
	if k.path != "" && !k.gone {
		_ = os.Chtimes(k.path, k.beatAt, k.beatAt) // if this fails, the file's earlier time is the safe side
	}
}

// idleFrom returns when the idle time of the attempt began. started is when its program started.
func (k *recoveryFile) idleFrom(started time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.path == "" {
		return started
	}
	return k.state.idleFrom(started)
}

// leave keeps the file, because this worker leaves the running attempt to a later one.
func (k *recoveryFile) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isLeft = true
}

// leaseEnd returns when the keeper of an attempt that was left ends it. ok is false if the attempt has no lease.
func (k *recoveryFile) leaseEnd() (end time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l, err := readOrphan(k.path)
	if err != nil || l.state.Lasting {
		return time.Time{}, false
	}
	return l.endAt(), true
}

// hasLeft reports whether this worker has left the attempt to a later one.
func (k *recoveryFile) hasLeft() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.isLeft
}

// remove removes the file, unless this worker has left the attempt to a later one.
func (k *recoveryFile) remove() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.path == "" || k.isLeft {
		return
	}
	k.gone = true
	if err := os.Remove(k.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.logger.Warn("what a later worker would need of an attempt is not removed", "error", err)
	}
}

// writeRecoveryFile writes the recovery file of an attempt that is about to start, or is to be left.
func (a *attempt) writeRecoveryFile(id string, spec *structpb.Struct, ws *workspace.Workspace) error {
	request, err := protojson.Marshal(a.req)
	if err != nil {
		return err
	}
	rendered, err := protojson.Marshal(spec)
	if err != nil {
		return err
	}
	err = a.attendance.createFile(recoveryPath(a.node.State.Dir, id), func(k *recoveryState) {
		k.Version, k.ID, k.Queue, k.TakenUpAt = keepsakeVersion, id, a.delivery.queue, a.takenUpAt.AsTime()
		k.Request, k.Spec, k.Workspace, k.TempDir = request, rendered, filepath.Base(ws.Dir()), ws.TempDir()
	})
	if err != nil {
		return fmt.Errorf("note what a later worker needs of %s: %w", id, err)
	}
	a.claimFile.remove()
	return nil
}

func recoveryPath(dir, id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(dir, fmt.Sprintf("%x", sum[:16])+recoverySuffix)
}
