package container

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"switchyard/activities/executor"
)

// openPermissions lets any user of a container write to the workspace, and
// restorePermissions reverts that. The workspace lies in a directory that no other user
// can enter. Neither function follows a link out of the workspace, since a container can
// create one.
func openPermissions(dir string) error { return permissionChanges(dir, 0o777, 0o666) }

func restorePermissions(dir string) error { return permissionChanges(dir, 0o700, 0o600) }

// handOverFiles makes the user of a container the owner of the files that its task starts with, as far as the user is a number and
// this process may do that.
func handOverFiles(dir, user string) error {
	owner, group, hasGroup := strings.Cut(user, ":")
	uid, err := strconv.Atoi(owner)
	if dir == "" || err != nil || os.Geteuid() != 0 {
		return nil
	}
	gid := uid
	if n, err := strconv.Atoi(group); hasGroup && err == nil {
		gid = n
	}
	return executor.ChownTree(dir, uid, gid)
}

func permissionChanges(dir string, dirs, files fs.FileMode) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	errs := []error{root.Chmod(".", dirs)}
	entries, err := fs.ReadDir(root.FS(), ".")
	errs = append(errs, err)
	for _, entry := range entries {
		switch mode := entry.Type(); {
		case mode.IsRegular():
			errs = append(errs, chmodIfOwned(root, entry.Name(), files))
		case mode.IsDir():
			errs = append(errs, chmodIfOwned(root, entry.Name(), dirs))
		}
	}
	return errors.Join(errs...)
}

// chmodIfOwned changes a mode, and ignores files that belong to a user of the container.
func chmodIfOwned(root *os.Root, name string, mode fs.FileMode) error {
	if err := root.Chmod(name, mode); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
