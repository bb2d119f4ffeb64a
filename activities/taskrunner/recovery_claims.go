package taskrunner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

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

// answerClaim ends what is left of an attempt and answers its activity. A recorded result counts. Otherwise an attempt
// that had started is lost, and any other is moved.
func (r *recovery) answerClaim(path string, c *claim, req *historyv1.ExecuteRequest) {
	n := r.node
	f := &claimFile{path: path, checkpoint: strings.TrimSuffix(path, filepath.Ext(path)) + claimCheckpoint}
	defer f.remove()
	a := n.newAttempt(delivery{activityRef: activityRef{token: c.Token, heartbeat: cmp.Or(c.Heartbeat, defaultHeartbeatTimeout)}, queue: c.Queue}, req)
	if filepath.Ext(path) == claimWaiting {
		r.complete(a, c.Token, moved(v1.ReasonIncarnation, fmt.Sprintf("node %s was started again before the task was", n.Name)), nil)
		return
	}
	if n.survivor(req.GetType()) != nil {
		return // it may still run; it is ended when it is found
	}
	if !r.endLeftover(a) {
		return
	}
	a.progress.Store(&historyv1.ExecuteProgress{StartedAt: stampOf(f.startedAt())})
	res, err := a.lostAnswer(r.ctx)
	if res.GetState() == v1.TaskLost {
		res.Checkpoint = f.savedCheckpoint(firstUnended(a.members, res))
	}
	n.Logger.Info("an attempt of an earlier worker has ended with it", "run", req.GetRunId(), "task", a.members[0].name, "state", cmp.Or(res.GetState(), "unknown"))
	r.complete(a, c.Token, res, err)
}

// endLeftover ends what an earlier worker has left of an attempt, although the executor has not found it. It returns false if that is
// not certain.
func (r *recovery) endLeftover(a *attempt) bool {
	end := r.node.capabilities(a.req.GetType()).EndLeftover
	if end == nil {
		return true
	}
	for i := range a.members {
		if err := end(r.ctx, attemptID(a.req, &a.members[i])); err != nil {
			r.node.Logger.Warn("what an earlier worker has left of an attempt could not be ended", "run", a.req.GetRunId(), "task", a.members[i].name, "error", err)
			return false
		}
	}
	return true
}

// firstUnended returns how many leading members of a batch have ended, according to the batch's answer.
func firstUnended(members []member, res *historyv1.ExecuteResponse) int {
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
