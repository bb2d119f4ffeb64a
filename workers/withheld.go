package workers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// openFolders returns the folder with the state that a restarted node recovers, and sets the folder for temporary
// directories of attempts that outlive the worker. Its error names the remedy.
func (n *Node) openFolders() (dir string, err error) {
	if n.lock == nil {
		return "", errors.New("the name of the node cannot be locked on this machine; the log of the worker has the reason")
	}
	dir, err = openState(n.cfg.StateDir, n.cfg.Client.Fleet, n.cfg.Name)
	if err != nil {
		return "", fmt.Errorf("%w, or give the worker another folder that only its user can access with --scratch-dir", err)
	}
	if n.cfg.LastingTempDir == "" {
		return dir, nil
	}
	n.attempts.State.TempDir, err = openState(ownFolder(n.cfg.LastingTempDir, "temp"), n.cfg.Client.Fleet, n.cfg.Name)
	if err != nil {
		return "", fmt.Errorf("%w, or give the worker another folder with --temp-dir", err)
	}
	return dir, nil
}

// withholdSurvivors stops the node from offering task types whose attempts outlive a worker that is killed. No later worker would
// find them, and nothing would enforce their leases.
func (n *Node) withholdSurvivors(reason error) {
	n.withheld = map[string]string{}
	for taskType, exec := range n.attempts.Executors {
		if exec.Capabilities().Survive != nil {
			n.withheld[taskType] = reason.Error()
		}
	}
	for taskType := range n.withheld {
		delete(n.attempts.Executors, taskType)
	}
	if len(n.withheld) == 0 {
		n.cfg.Logger.Warn("no attempt will outlive this worker", "error", reason)
		return
	}
	types := strings.Join(slices.Sorted(maps.Keys(n.withheld)), ", ")
	n.cfg.Logger.Warn("no attempt will outlive this worker, so the node offers no tasks of type "+types, "error", reason)
}

// offered returns the given types that the node offers.
func (n *Node) offered(types []string) []string {
	return slices.DeleteFunc(types, func(taskType string) bool { return n.withheld[taskType] != "" })
}

// allWithheld returns everything that the node withholds, with the reasons.
func (n *Node) allWithheld() map[string]string {
	if len(n.cfg.Withheld) == 0 {
		return n.withheld
	}
	all := maps.Clone(n.cfg.Withheld)
	maps.Copy(all, n.withheld)
	return all
}
