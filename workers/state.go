package workers

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"switchyard/workers/node"
)

// nodeFolder is a name for files of a node on its machine: several fleets may have nodes
// of one name here.
func nodeFolder(fleet, name string) string {
	sum := sha256.Sum256([]byte(fleet + "/" + name))
	return node.Name(fmt.Sprintf("%.40s-%x", name, sum[:8]))
}

// ownFolder returns the folder of this user's nodes for one use, in a folder that others may write to.
func ownFolder(dir, use string) string {
	return filepath.Join(dir, fmt.Sprintf("switchyard-%s-%d", use, os.Getuid()))
}

// StateParent returns the folder below which nodes find again what they have left: that which they are given, or else that of this
// user in the folder for temporary files.
func StateParent(given string) string {
	if given == "" {
		return ownFolder(os.TempDir(), "state")
	}
	return given
}

// openState returns the folder in which a node finds again what it has left, below StateParent of parent. The folder itself is made
// when something is put there.
func openState(parent, fleet, name string) (string, error) {
	parent = StateParent(parent)
	if err := os.Mkdir(parent, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := private(parent); err != nil {
		return "", err
	}
	return filepath.Join(parent, nodeFolder(fleet, name)), nil
}
