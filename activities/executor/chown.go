package executor

import (
	"io/fs"
	"os"
	"path/filepath"
)

// ChownTree makes a user the owner of a directory and of everything in it. It follows no links. No other process may change the
// directory meanwhile.
func ChownTree(dir string, uid, gid int) error {
	return filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(file, uid, gid)
	})
}
