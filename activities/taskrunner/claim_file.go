package taskrunner

import (
	"cmp"
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

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// A claim file names the activity that a worker still has to answer. It exists from when the node accepts an attempt
// until the attempt has its answer. A later worker holds the node's lock, so it knows that the earlier one is dead. It
// ends what is left of the attempt and answers in its place, earlier than the heartbeat time-out would:
//
//	<state dir>/claims/<hash of the attempt's id>.waiting     no process has been started
//	<state dir>/claims/<hash of the attempt's id>.started     a process may have been started
//	<state dir>/claims/<hash of the attempt's id>.checkpoint  an ExecuteProgress with the newest checkpoint
//
// If an attempt outlives its worker, its claim file is removed once its recovery file exists.

const (
	claimsFolder    = "claims"
	claimWaiting    = ".waiting"
	claimStarted    = ".started"
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
func attemptID(req *v1.ExecuteRequest, m *member) string {
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

// saveCheckpoint saves the newest checkpoint of an attempt for a later worker. ended is how many members of a batch have
// ended: the checkpoint belongs to the next one. A nil checkpoint removes the saved one.
func (f *claimFile) saveCheckpoint(ended int, checkpoint *v1.Checkpoint) {
	if f == nil {
		return
	}
	if checkpoint == nil {
		_ = os.Remove(f.checkpoint)
		return
	}
	text, err := proto.Marshal(&v1.ExecuteProgress{Ended: int32(ended), Checkpoint: checkpoint})
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
func (f *claimFile) savedCheckpoint(ended int) *v1.Checkpoint {
	text, err := os.ReadFile(f.checkpoint)
	if err != nil {
		return nil
	}
	var p v1.ExecuteProgress
	if proto.Unmarshal(text, &p) != nil || int(p.GetEnded()) != ended {
		return nil
	}
	return p.GetCheckpoint()
}

// answerClaims answers for the attempts that an earlier worker left without a recovery file.
func (r *recovery) answerClaims() {
	dir := filepath.Join(r.node.State.Dir, claimsFolder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.node.Logger.Warn("attempts of an earlier worker are not answered for; their heartbeat time-outs end them", "error", err)
		}
		return
	}
	claimed := map[string]bool{}
	for _, entry := range entries {
		base := strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name()))
		claimed[base] = claimed[base] || !isCheckpoint(entry.Name())
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if isCheckpoint(path) {
			if base, _, _ := strings.Cut(entry.Name(), "."); !claimed[base] {
				_ = os.Remove(path)
			}
			continue
		}
		c, req, err := readClaim(path)
		if err != nil {
			r.node.Logger.Debug("a claim file is of no use", "file", path, "error", err)
			_ = os.Remove(path)
			continue
		}
		r.work.Go(func() { r.answerClaim(path, c, req) })
	}
}

// isCheckpoint reports whether a file in the claims folder belongs to a checkpoint.
func isCheckpoint(name string) bool {
	return filepath.Ext(strings.TrimSuffix(name, newSuffix)) == claimCheckpoint
}

func readClaim(path string) (*claim, *v1.ExecuteRequest, error) {
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
	var req v1.ExecuteRequest
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, nil, err
	}
	return &c, &req, proto.Unmarshal(c.Request, &req)
}

// answerClaim ends what is left of an attempt and answers its activity. A recorded result counts. Otherwise an attempt
// that had started is lost, and any other is moved.
func (r *recovery) answerClaim(path string, c *claim, req *v1.ExecuteRequest) {
	n := r.node
	f := &claimFile{path: path, checkpoint: strings.TrimSuffix(path, filepath.Ext(path)) + claimCheckpoint}
	defer f.remove()
	a := n.newAttempt(delivery{token: c.Token, queue: c.Queue, heartbeat: c.Heartbeat}, req)
	if filepath.Ext(path) == claimWaiting {
		r.complete(a, c.Token, moved(v1.ReasonIncarnation, fmt.Sprintf("node %s was started again before the task was", n.Name)), nil)
		return
	}
	if n.survivor(req.GetType()) != nil {
		return // it may still run; it is ended when it is found
	}
	if e, ok := n.Executors[req.GetType()].(executor.LeftoverEnder); ok {
		for i := range a.members {
			if err := e.EndLeftover(r.ctx, attemptID(req, &a.members[i])); err != nil {
				n.Logger.Warn("what an earlier worker has left of an attempt could not be ended", "run", req.GetRunId(), "task", a.members[i].name, "error", err)
				return
			}
		}
	}
	res, err := n.lostAnswer(r.ctx, a.heartbeat, a.req)
	if res.GetState() == v1.TaskLost {
		res.Checkpoint = f.savedCheckpoint(firstUnended(a.members, res))
	}
	n.Logger.Info("an attempt of an earlier worker has ended with it", "run", req.GetRunId(), "task", a.members[0].name, "state", cmp.Or(res.GetState(), "unknown"))
	r.complete(a, c.Token, res, err)
}

// firstUnended returns how many leading members of a batch have ended, according to the batch's answer.
func firstUnended(members []member, res *v1.ExecuteResponse) int {
	ended := map[int32]bool{}
	for _, m := range res.GetBatch() {
		ended[m.GetIndex()] = true
	}
	for i := range members {
		if !ended[members[i].index] {
			return i
		}
	}
	return len(members)
}
