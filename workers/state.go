package workers

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"switchyard/activities/statedir"
	"switchyard/workers/node"
)

// nodeFolder returns a name for files of a node on its machine. It includes the fleet, because several fleets may have
// nodes of the same name here.
func nodeFolder(fleet, name string) string {
	sum := sha256.Sum256([]byte(fleet + "/" + name))
	return node.Name(fmt.Sprintf("%.40s-%x", name, sum[:8]))
}

// ownFolder returns the folder for one use by this user's nodes, inside a folder that others may write to.
func ownFolder(dir, use string) string {
	return filepath.Join(dir, fmt.Sprintf("switchyard-%s-%d", use, os.Getuid()))
}

// StateParent returns the parent of the folders with the state that restarted nodes recover: the given folder, or
// one in the state folder of this machine.
func StateParent(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	dir, err := statedir.Dir()
	return filepath.Join(dir, "nodes"), err
}

// openState returns the folder with the state that a restarted node recovers, below StateParent of parent. The folder
// itself is created on first use.
func openState(parent, fleet, name string) (string, error) {
	parent, err := StateParent(parent)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	if err := private(parent); err != nil {
		return "", err
	}
	return filepath.Join(parent, nodeFolder(fleet, name)), nil
}
