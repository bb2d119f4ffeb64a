package taskrunner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// The tasks of a run that share a workspace find it in a folder of their node, which is removed once the generation of the run has
// ended:
//
//	<Folders.Runs>/<hash of the generation>.json   which generation it is
//	<Folders.Runs>/<hash of the generation>/NAME   the workspace

const (
	generationSuffix = ".json"
	// lastSweepTimeout bounds the removal of folders by a worker that stops.
	lastSweepTimeout = 2 * time.Second
)

// generationOf returns what identifies the generation of a run.
func generationOf(req *historyv1.ExecuteRequest) executor.Identity {
	return executor.Identity{Run: req.GetRunId(), Chain: req.GetChain(), Generation: req.GetGeneration()}
}

// runFolder returns the folder of the generation of a run.
func (n *Node) runFolder(req *historyv1.ExecuteRequest) string {
	id := generationOf(req)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", id.Run, id.Chain, id.Generation))
	return filepath.Join(n.Folders.Runs, fmt.Sprintf("%x", sum[:16]))
}

// sharedDir returns the workspace that an attempt shares with other tasks of its run.
func (n *Node) sharedDir(req *historyv1.ExecuteRequest) string {
	return filepath.Join(n.runFolder(req), req.GetWorkspace().GetName())
}

// openShared creates the workspace that an attempt shares, or finds it. A response means that the attempt has already failed.
func (n *Node) openShared(req *historyv1.ExecuteRequest) (*historyv1.ExecuteResponse, error) {
	w := req.GetWorkspace()
	if w == nil {
		return nil, nil
	}
	dir := n.sharedDir(req)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if w.GetUsed() {
		return &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: v1.ReasonWorkspace, Result: &v1.TaskResult{ExitCode: -1}, Error: fmt.Sprintf(
			"node %s does not have workspace %s, which tasks of the run have used; `switchyard runs retry` runs them again", n.Name, w.GetName())}, nil
	}
	text, err := json.Marshal(generationOf(req))
	if err == nil {
		err = writePrivate(n.runFolder(req)+generationSuffix, text)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(dir), 0o700)
	}
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil {
		err = os.Chmod(dir, 0o777) // only this user can enter the folder above it
	}
	return nil, err
}

// SweepRunFolders removes the folders of runs that have ended, from time to time until ctx ends, and then once more.
func (n *Node) SweepRunFolders(ctx context.Context) {
	for interval := cmp.Or(n.Timing.WantedInterval, defaultWantedInterval); ; {
		select {
		case <-time.After(jittered(interval)):
			n.sweepRunFolders(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSweepTimeout)
			defer cancel()
			n.sweepRunFolders(last)
			return
		}
	}
}

// sweepRunFolders removes the folders of runs that have ended and have no attempt left.
func (n *Node) sweepRunFolders(ctx context.Context) {
	files, err := filepath.Glob(filepath.Join(n.Folders.Runs, "*"+generationSuffix))
	if err != nil || len(files) == 0 {
		return
	}
	for _, file := range files {
		var id executor.Identity
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &id)
		}
		isOpen := true
		if err == nil {
			isOpen, err = n.IsGenerationOpen(ctx, id)
		}
		folder := strings.TrimSuffix(file, generationSuffix)
		isUsed := func(a *attempt) bool { return n.runFolder(a.req) == folder }
		if err == nil && !isOpen && !slices.ContainsFunc(n.attempts.all(), isUsed) {
			err = errors.Join(workspace.Remove(folder), os.Remove(file))
		}
		if err != nil {
			n.Logger.Warn("the folder of a run could not be removed", "run", id.Run, "folder", folder, "error", err)
		}
	}
}
