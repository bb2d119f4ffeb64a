package taskrunner

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// A claim file names the activity that a worker still has to answer. It exists from when the node accepts an attempt
// until the attempt has its answer. A later worker holds the node's lock, so it knows that the earlier one is dead. It
// ends what is left of the attempt and answers in its place, earlier than the heartbeat time-out would:
//
//	<state dir>/claims/<hash of the attempt's id>.waiting     no process has been started
//	<state dir>/claims/<hash of the attempt's id>.started     a process may have been started
//	<state dir>/claims/<hash of the attempt's id>.running     a process has been started, at the modification time
//	<state dir>/claims/<hash of the attempt's id>.checkpoint  an ExecuteProgress with the newest checkpoint
//
// If an attempt outlives its worker, its claim file is removed once its recovery file exists.

const (
	claimsFolder    = "claims"
	claimWaiting    = ".waiting"
	claimStarted    = ".started"
	claimRunning    = ".running"
	claimCheckpoint = ".checkpoint"
	maxClaimBytes   = 16 << 20
)

// claimFile is the claim file of one attempt. Methods of a nil claimFile do nothing. One goroutine at a time uses it,
// except that another may save checkpoints.
type claimFile struct {
	path       string
	checkpoint string // path of the file with the checkpoint
}

// claim is the content of a claim file.
type claim struct {
	Token     []byte        `json:"token"`
	Heartbeat time.Duration `json:"heartbeat"`
	Queue     string        `json:"queue"`
	// Request is the ExecuteRequest in the binary form of protobuf.
	Request []byte `json:"request"`
}

// attemptID returns the id of a member of a request for its executor. It includes the chain, so that remains of another
// chain of the run are not mistaken for this attempt.
func attemptID(req *historyv1.ExecuteRequest, m *member) string {
	run := req.GetRunId()
	if chain := req.GetChain(); chain != "" {
		run += "@" + chain
	}
	return fmt.Sprintf("%s/%s/c%d", run, m.name, m.claim)
}

// writeClaim writes the claim file of an accepted attempt. If it cannot, the heartbeat time-out does what a later worker
// would.
func (n *Node) writeClaim(a *attempt, d delivery) *claimFile {
	if n.State.Dir == "" || a.req.GetReattach() {
		return nil
	}
	dir := filepath.Join(n.State.Dir, claimsFolder)
	sum := sha256.Sum256([]byte(attemptID(a.req, &a.members[0])))
	base := filepath.Join(dir, fmt.Sprintf("%x", sum[:16]))
	f := &claimFile{path: base + claimWaiting, checkpoint: base + claimCheckpoint}
	request, err := proto.Marshal(a.req)
	if err == nil {
		var text []byte
		text, err = json.Marshal(claim{Token: d.token, Heartbeat: d.heartbeat, Queue: d.queue, Request: request})
		if err == nil {
			err = writePrivate(f.path, text)
		}
	}
	if err != nil {
		n.Logger.Debug("a later worker could not answer for an attempt", "run", a.req.GetRunId(), "task", a.members[0].name, "error", err)
		return nil
	}
	return f
}

// writePrivate writes a file that only this user can read, and creates its folder if necessary.
func writePrivate(path string, text []byte) error {
	err := os.WriteFile(path, text, 0o600)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// start marks that a process may be started from now on.
func (f *claimFile) start() {
	if f == nil {
		return
	}
	started := strings.TrimSuffix(f.path, claimWaiting) + claimStarted
	if os.Rename(f.path, started) == nil {
		f.path = started
	}
}

// run marks that the process, or the first of a batch, has started at a time.
func (f *claimFile) run(at time.Time) {
	if f == nil || filepath.Ext(f.path) != claimStarted || os.Chtimes(f.path, at, at) != nil {
		return
	}
	running := strings.TrimSuffix(f.path, claimStarted) + claimRunning
	if os.Rename(f.path, running) == nil {
		f.path = running
	}
}

// startedAt returns when the process started, or the zero time if that is unknown.
func (f *claimFile) startedAt() time.Time {
	if filepath.Ext(f.path) != claimRunning {
		return time.Time{}
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// saveCheckpoint saves the newest checkpoint of an attempt for a later worker. ended is how many members of a batch have
// ended: the checkpoint belongs to the next one. A nil checkpoint removes the saved one.
func (f *claimFile) saveCheckpoint(ended int, checkpoint *historyv1.Checkpoint) {
	if f == nil {
		return
	}
	if checkpoint == nil {
		_ = os.Remove(f.checkpoint)
		return
	}
	text, err := proto.Marshal(&historyv1.ExecuteProgress{Ended: int32(ended), Checkpoint: checkpoint})
	if err == nil {
		err = os.WriteFile(f.checkpoint+newSuffix, text, 0o600)
	}
	if err == nil {
		err = os.Rename(f.checkpoint+newSuffix, f.checkpoint)
	}
	if err != nil { // a later worker continues from an older one
		_ = os.Remove(f.checkpoint + newSuffix)
	}
}

// newSuffix is the suffix of a file that is being written.
const newSuffix = ".new"

func (f *claimFile) remove() {
	if f != nil {
		_ = os.Remove(f.checkpoint)
		_ = os.Remove(f.path) // a later worker has nothing to answer
	}
}

// savedCheckpoint returns the checkpoint that saveCheckpoint has saved for the member after the first ended ones, or nil
// if there is none for that member.
func (f *claimFile) savedCheckpoint(ended int) *historyv1.Checkpoint {
	text, err := os.ReadFile(f.checkpoint)
	if err != nil {
		return nil
	}
	var p historyv1.ExecuteProgress
	if proto.Unmarshal(text, &p) != nil || int(p.GetEnded()) != ended {
		return nil
	}
	return p.GetCheckpoint()
}

// isCheckpoint reports whether a file in the claims folder belongs to a checkpoint.
func isCheckpoint(name string) bool {
	return filepath.Ext(strings.TrimSuffix(name, newSuffix)) == claimCheckpoint
}

func readClaim(path string) (*claim, *historyv1.ExecuteRequest, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxClaimBytes {
		return nil, nil, errors.New("it is none")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	var c claim
	var req historyv1.ExecuteRequest
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, nil, err
	}
	return &c, &req, proto.Unmarshal(c.Request, &req)
}
