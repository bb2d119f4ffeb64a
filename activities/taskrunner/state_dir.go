package taskrunner

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"switchyard/activities/executor/workspace"
)

// State is what a worker keeps for the next worker of its node. Its exported fields are set before the first attempt. It is
// safe for concurrent use.
type State struct {
	// Dir holds what a later worker of the node needs. No other process may use the directory. If empty, no attempt
	// outlives this worker, for the reason in Problem, which may be nil.
	Dir     string
	Problem error
	// TempDir holds the temporary directories of attempts that outlive this worker. It belongs to the node alone. If
	// empty, those directories are in the private directories of the attempts.
	TempDir string
	// Keeps is set if the node is to leave attempts to a later worker when it stops.
	Keeps bool
	// Guard is called before the first attempt starts or continues that may leave something when this worker is killed. It
	// starts a process that outlives the worker and enforces the leases as a Keeper from then on. If it is nil or fails, nothing does.
	Guard func() error

	guarded   sync.Once
	isGuarded bool // set by guarded
	make      sync.Once
	root      *workspace.Root // set by make
}

// guard calls Guard before the first attempt that may leave something when this worker is killed. It reports whether something enforces the leases of
// such attempts once this worker has ended.
func (s *State) guard(logger *slog.Logger) bool {
	s.guarded.Do(func() {
		if s.Guard == nil {
			return
		}
		err := s.Guard()
		if s.isGuarded = err == nil; err != nil {
			logger.Warn("attempts may outlive their leases if this worker is killed", "error", err)
		}
	})
	return s.isGuarded
}

// workspaces returns the root of the workspaces of attempts that outlive the worker.
func (s *State) workspaces() *workspace.Root {
	s.make.Do(func() { s.root = workspace.NewRoot(filepath.Join(s.Dir, survivorsFolder), s.TempDir) })
	return s.root
}

// Close removes the state that need not outlive the worker. No attempt may be running.
func (s *State) Close() error {
	if s.Dir == "" {
		return nil
	}
	err := s.workspaces().Close()
	// A directory that is not empty stays.
	_ = os.Remove(filepath.Join(s.Dir, survivorsFolder))
	_ = os.Remove(filepath.Join(s.Dir, claimsFolder))
	_ = os.Remove(s.Dir)
	if s.TempDir != "" {
		_ = os.Remove(s.TempDir)
	}
	return err
}
