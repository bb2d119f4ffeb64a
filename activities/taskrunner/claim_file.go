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

// A claim file says for which activity a worker owes an answer, from when the node takes
// an attempt up until the attempt has its answer. A later worker of the node, which knows
// that the earlier one is dead because it holds the node's lock, ends what is left of the
// attempt and answers in its place, before the heartbeat time-out would:
//
//	<state dir>/claims/<hash of the attempt's id>.waiting     no process has been started
//	<state dir>/claims/<hash of the attempt's id>.started     one may have been
//	<state dir>/claims/<hash of the attempt's id>.checkpoint  an ExecuteProgress with its newest checkpoint
//
// The file of an attempt that outlives its worker is removed when its recovery file is there.

const (
	claimsFolder    = "claims"
	claimWaiting    = ".waiting"
	claimStarted    = ".started"
	claimCheckpoint = ".checkpoint"
	maxClaimBytes   = 16 << 20
)

// claimFile is that of one attempt. A nil one does nothing. One goroutine at a time uses it, and besides
// it one that saves checkpoints.
type claimFile struct {
	path       string
	checkpoint string // path of the file with the checkpoint
}

// claim is the content of the file.
type claim struct {
	Token     []byte        `json:"token"`
	Heartbeat time.Duration `json:"heartbeat"`
	Queue     string        `json:"queue"`
	// Request is the ExecuteRequest in the binary form of protobuf.
	Request []byte `json:"request"`
}

// attemptID returns the id of a member of a request as its executor knows it. What another chain of the run has left is
// not taken for it.
func attemptID(req *v1.ExecuteRequest, m *member) string {
	run := req.GetRunId()
	if chain := req.GetChain(); chain != "" {
		run += "@" + chain
	}
	return fmt.Sprintf("%s/%s/c%d", run, m.name, m.claim)
}

// writeClaim writes the claim file of an attempt that is accepted. Without it, the
// heartbeat time-out does what a later worker would.
func (n *Node) writeClaim(a *attempt, d delivery) *claimFile {
	if n.StateDir == "" || a.req.GetAdopt() {
		return nil
	}
	dir := filepath.Join(n.StateDir, claimsFolder)
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

// writePrivate writes a file for this user alone, and its folder if need be.
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

// start notes that a process may be started from here on.
func (f *claimFile) start() {
	if f == nil {
		return
	}
	started := strings.TrimSuffix(f.path, claimWaiting) + claimStarted
	if os.Rename(f.path, started) == nil {
		f.path = started
	}
}

// saveCheckpoint keeps the newest checkpoint of an attempt for a later worker, and how many members of a batch have
// ended: it is that of the next one. Without a checkpoint it removes the one before.
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
	if err != nil { // a later worker would continue from an older one
		_ = os.Remove(f.checkpoint + newSuffix)
	}
}

// newSuffix ends the name of a file that is being written.
const newSuffix = ".new"

func (f *claimFile) remove() {
	if f != nil {
		_ = os.Remove(f.checkpoint)
		_ = os.Remove(f.path) // a later worker has nothing to answer
	}
}

// savedCheckpoint returns the checkpoint that saveCheckpoint has kept of the member after the first ended ones. It returns
// nil if saveCheckpoint has kept nothing for that member.
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

// answerClaims answers for the attempts that an earlier worker has left without a recovery file.
func (r *recovery) answerClaims() {
	dir := filepath.Join(r.node.StateDir, claimsFolder)
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

// isCheckpoint reports whether a file in the folder of claims belongs to a checkpoint.
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

// answerClaim ends what is left of an attempt and answers its activity: what has been
// recorded counts, an attempt that had started is lost, and any other is moved.
func (r *recovery) answerClaim(path string, c *claim, req *v1.ExecuteRequest) {
	n := r.node
	f := &claimFile{path: path, checkpoint: strings.TrimSuffix(path, filepath.Ext(path)) + claimCheckpoint}
	defer f.remove()
	a := n.newAttempt(delivery{token: c.Token, queue: c.Queue, heartbeat: c.Heartbeat}, req)
	if filepath.Ext(path) == claimWaiting {
		n.complete(a, c.Token, moved(v1.ReasonIncarnation, fmt.Sprintf("node %s was started again before the task was", n.Name)), nil)
		return
	}
	if n.survivor(req.GetType()) != nil {
		return // it may run on, unknown: it is ended when it is found
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
	n.complete(a, c.Token, res, err)
}

// firstUnended returns how many of the first members of a batch have ended, by the answer to it.
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
