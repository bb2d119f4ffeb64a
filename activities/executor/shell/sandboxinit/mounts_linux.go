package sandboxinit

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Namespaces are the separate namespaces of every sandbox; network may add one more. There is no PID namespace,
// since the program would be its init process, which ignores SIGTERM by default.
const Namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWIPC

// place is a directory that is mounted again at its path after other mounts have hidden it.
type place struct {
	path     string
	fd       int
	writable bool
}

// mount sets up the file system of the sandbox. Everything becomes read-only, except for the workspace and the
// shared directory. /tmp, /dev/shm and /proc are private, and the other workspaces are inaccessible. mount leaves
// the process in the working directory.
func (p *Plan) mount() error {
	if err := unix.Unshare(Namespaces); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	// Stop the propagation of mounts in both directions.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	dir, err := filepath.EvalSymlinks(p.Dir)
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	var places []place
	for _, one := range []place{{path: p.Workspace, writable: true}, {path: p.Temp, writable: true}, {path: p.Files, writable: true}, {path: p.Shared, writable: true}, {path: dir}} {
		if one.path == "" || slices.ContainsFunc(places, func(o place) bool { return isWithin(one.path, o.path) }) {
			continue
		}
		if one.fd, err = openTree(one.path); err != nil {
			return fmt.Errorf("mount %s: %w", one.path, err)
		}
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
		if !one.writable {
			attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
		if err := unix.MountSetattr(one.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
			return fmt.Errorf("mount %s: %w", one.path, err)
		}
		places = append(places, one)
	}
	temp, err := p.temp()
	if err != nil {
		return err
	}
	err = unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
	if err != nil {
		return fmt.Errorf("make / read-only: %w", err)
	}
	if err := p.ownMounts(temp); err != nil {
		return err
	}
	hidden, err := p.hide()
	if err != nil {
		return err
	}
	if err := remountPlaces(places, hidden); err != nil {
		return err
	}
	for _, path := range hidden {
		if path == "/tmp" {
			continue
		}
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	return nil
}

// temp returns a mount of the attempt's temporary directory for /tmp, or -1.
func (p *Plan) temp() (int, error) {
	if p.Temp == "" {
		return -1, nil
	}
	fd, err := openTree(p.Temp)
	if err == nil {
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
	}
	if err != nil {
		return -1, fmt.Errorf("private /tmp: %w", err)
	}
	return fd, nil
}

// ownMounts mounts the sandbox's private /tmp, /dev/shm and /proc.
func (p *Plan) ownMounts(temp int) error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	owner := fmt.Sprintf("mode=1777,uid=%d,gid=%d", p.User, p.User)
	var err error
	if temp >= 0 {
		err = unix.MoveMount(temp, "", unix.AT_FDCWD, "/tmp", unix.MOVE_MOUNT_F_EMPTY_PATH)
	} else {
		err = unix.Mount("tmpfs", "/tmp", "tmpfs", flags, owner)
	}
	if err != nil {
		return fmt.Errorf("private /tmp: %w", err)
	}
	size := ""
	if p.ShmBytes > 0 {
		size = ",size=" + strconv.FormatInt(p.ShmBytes, 10)
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", flags, owner+size); err != nil && err != unix.ENOENT {
		return fmt.Errorf("private /dev/shm: %w", err)
	}
	// hidepid hides the processes of other users.
	if err := unix.Mount("proc", "/proc", "proc", flags|unix.MS_NOEXEC, "hidepid=2"); err != nil {
		return fmt.Errorf("private /proc: %w", err)
	}
	return nil
}

// hide covers the directories around the workspace, the temporary directory and the files, and directories on the way that the
// user could not pass. It returns all covered directories, including /tmp.
func (p *Plan) hide() ([]string, error) {
	hidden := []string{"/tmp"}
	for _, path := range []string{p.Workspace, p.Temp, p.Files, p.Shared} {
		if path == "" || isHidden(path, hidden) {
			continue
		}
		cover, err := firstImpassable(path)
		if err != nil {
			return nil, err
		}
		if cover == "" && path != p.Shared {
			cover = filepath.Dir(path)
		}
		if cover == "" {
			continue
		}
		if err := unix.Mount("tmpfs", cover, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
			return nil, fmt.Errorf("hide %s: %w", cover, err)
		}
		hidden = append(hidden, cover)
	}
	return hidden, nil
}

// firstImpassable returns the topmost directory above a path that others may not pass through, or "".
func firstImpassable(path string) (string, error) {
	parts := strings.Split(filepath.Dir(path), "/")
	for i := range parts {
		dir := "/" + filepath.Join(parts[:i+1]...)
		info, err := os.Stat(dir)
		if err != nil {
			return "", err
		}
		if info.Mode().Perm()&0o001 == 0 {
			if dir == "/" {
				return "", fmt.Errorf("only its owner may enter /")
			}
			return dir, nil
		}
	}
	return "", nil
}

// remountPlaces mounts places at their paths, shortest path first. A place that is not covered is mounted only if it must
// be writable.
func remountPlaces(places []place, hidden []string) error {
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(len(a.path), len(b.path)) })
	for _, one := range places {
		covered := isHidden(one.path, hidden)
		if !covered && !one.writable || slices.Contains(hidden, one.path) {
			continue
		}
		if covered {
			if err := os.MkdirAll(one.path, 0o755); err != nil {
				return fmt.Errorf("mount %s: %w", one.path, err)
			}
		}
		if err := unix.MoveMount(one.fd, "", unix.AT_FDCWD, one.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mount %s: %w", one.path, err)
		}
	}
	return nil
}

func isHidden(path string, hidden []string) bool {
	return slices.ContainsFunc(hidden, func(dir string) bool { return isWithin(path, dir) })
}

// isWithin reports whether a path is a directory or lies in it.
func isWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// openTree clones the mounts at and below a directory.
func openTree(path string) (int, error) {
	return unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
}
