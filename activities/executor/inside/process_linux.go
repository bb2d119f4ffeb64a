package inside

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/procfs"
)

// hold is an open process. While it is open, no other process can get the same PID.
type hold struct {
	p     Process
	pidfd *os.File
}

// open opens the process. It returns executor.ErrNotRunning if the process has ended.
func (p Process) open() (*hold, error) {
	fd, err := unix.PidfdOpen(p.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, executor.ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", p.PID, err)
	}
	h := &hold{p: p, pidfd: os.NewFile(uintptr(fd), "pidfd")}
	if err := h.check(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// check returns executor.ErrNotRunning if the process has ended. If check succeeds, everything opened in /proc/PID before belongs
// to the process itself.
func (h *hold) check() error {
	now, err := procfs.Read(strconv.Itoa(h.p.PID))
	if err != nil || now.Zombie || h.p.Start != 0 && now.Start != h.p.Start {
		return executor.ErrNotRunning
	}
	ended := false
	if raw, err := h.pidfd.SyscallConn(); err != nil {
		return err
	} else if err := raw.Control(func(fd uintptr) { ended = hasEnded(fd) }); err != nil {
		return err
	}
	if ended {
		return executor.ErrNotRunning
	}
	return nil
}

// hasEnded reports whether the process of a pidfd has ended.
func hasEnded(fd uintptr) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0
}

// awaitEnd waits until the process ends and returns true. It returns false if the hold is closed first.
func (h *hold) awaitEnd() bool {
	raw, err := h.pidfd.SyscallConn()
	return err == nil && raw.Read(hasEnded) == nil
}

// Close releases the process.
func (h *hold) Close() error { return h.pidfd.Close() }

// path returns the path of one of the process's files in /proc.
func (p Process) path(name string) string { return "/proc/" + strconv.Itoa(p.PID) + "/" + name }

// isOwn reports whether a /proc file of the process, such as its root, is the same as that of this thread.
func (p Process) isOwn(name string) (bool, error) {
	var own, its unix.Stat_t
	if err := unix.Stat("/proc/thread-self/"+name, &own); err != nil {
		return false, fmt.Errorf("read /proc/thread-self/%s: %w", name, err)
	}
	if err := unix.Stat(p.path(name), &its); err != nil {
		return false, fmt.Errorf("read %s: %w", p.path(name), err)
	}
	return own.Dev == its.Dev && own.Ino == its.Ino, nil
}

// sharesFiles reports whether the process sees the same files as this one.
func (p Process) sharesFiles() (bool, error) {
	for _, name := range []string{"ns/mnt", "root"} {
		if own, err := p.isOwn(name); err != nil || !own {
			return false, err
		}
	}
	return true, nil
}

// isOwnUser reports whether the user of the process's files is this process's own user.
func (p Process) isOwnUser() bool {
	own, err := os.Getgroups()
	return err == nil && int(p.UID) == os.Geteuid() && int(p.GID) == os.Getegid() &&
		!slices.ContainsFunc(p.Groups, func(g uint32) bool { return int(g) != os.Getegid() && !slices.Contains(own, int(g)) })
}

// inWorkerNamespace returns the process with its user as numbered in the user namespace of this process.
func (p Process) inWorkerNamespace() (Process, error) {
	uids, err := readIDs(p.path("uid_map"))
	if err != nil {
		return p, err
	}
	gids, err := readIDs(p.path("gid_map"))
	if err != nil {
		return p, err
	}
	groups := p.Groups
	p.Groups = make([]uint32, 0, len(groups))
	ok := uids.translate(&p.UID) && gids.translate(&p.GID)
	for _, g := range groups {
		if gids.translate(&g) {
			p.Groups = append(p.Groups, g)
		}
	}
	if !ok {
		return p, refuse(fmt.Sprintf("user %d or group %d does not exist in its user namespace", p.UID, p.GID))
	}
	return p, nil
}

// idRange is a line of uid_map or gid_map, see user_namespaces(7).
type idRange struct{ inside, outside, count uint64 }

type idRanges []idRange

func readIDs(path string) (idRanges, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the user namespace: %w", err)
	}
	var all idRanges
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		var r idRange
		if _, err := fmt.Sscan(lines.Text(), &r.inside, &r.outside, &r.count); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (all idRanges) translate(id *uint32) bool {
	for _, r := range all {
		if n := uint64(*id); n >= r.inside && n-r.inside < r.count {
			*id = uint32(r.outside + n - r.inside)
			return true
		}
	}
	return false
}

// User looks up a user given as "name", "uid", "name:group" or "uid:gid" in the process's own /etc/passwd and /etc/group. A
// numeric user needs no account.
func (p Process) User(who string) (User, error) {
	h, err := p.open()
	if err != nil {
		return User{}, err
	}
	defer h.Close()
	root, err := h.openRoot()
	if err != nil {
		return User{}, err
	}
	defer root.Close()
	var files [2]io.Reader
	for i, name := range []string{"etc/passwd", "etc/group"} {
		f, err := openWithin(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return User{}, fmt.Errorf("open /%s of process %d: %w", name, p.PID, err)
		}
		defer f.Close()
		files[i] = f
	}
	return parseUser(who, files[0], files[1])
}

// openRoot opens the root directory of the process.
func (h *hold) openRoot() (*os.File, error) {
	fd, err := unix.Open(h.p.path("root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil, refuse("the worker cannot access its files because the worker is not root")
	}
	if err == nil {
		if err = h.check(); err != nil {
			unix.Close(fd)
		}
	} else if h.check() != nil {
		err = executor.ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), h.p.path("root")), nil
}

// openWithin opens a regular file as a process with that root would, resolving all links inside the root.
func openWithin(root *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat2(int(root.Fd()), name, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is not a regular file"), f.Close())
	}
	return f, nil
}
