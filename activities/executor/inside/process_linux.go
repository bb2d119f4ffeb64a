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

// hold is a process whose number no other process gets, as long as it is open.
type hold struct {
	p     Process
	pidfd *os.File
}

// open returns a hold of the process. executor.ErrNotRunning says that it has ended.
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

// check returns executor.ErrNotRunning if the process has ended. What was opened in /proc/PID before a check that succeeds is of the
// process itself.
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

// awaitEnd returns true when the process has ended, and false when the hold is closed before.
func (h *hold) awaitEnd() bool {
	raw, err := h.pidfd.SyscallConn()
	return err == nil && raw.Read(hasEnded) == nil
}

// Close lets go of the process.
func (h *hold) Close() error { return h.pidfd.Close() }

// path returns the path of a file of the process in /proc.
func (p Process) path(name string) string { return "/proc/" + strconv.Itoa(p.PID) + "/" + name }

// isOwn reports whether a file of the process in /proc is the same as that of this thread, such as its root.
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

// sharesFiles reports whether the process sees the files that this one does.
func (p Process) sharesFiles() (bool, error) {
	for _, name := range []string{"ns/mnt", "root"} {
		if own, err := p.isOwn(name); err != nil || !own {
			return false, err
		}
	}
	return true, nil
}

// isOwnUser reports whether the process's files are read and written as this process's own user.
func (p Process) isOwnUser() bool {
	own, err := os.Getgroups()
	return err == nil && int(p.UID) == os.Geteuid() && int(p.GID) == os.Getegid() &&
		!slices.ContainsFunc(p.Groups, func(g uint32) bool { return int(g) != os.Getegid() && !slices.Contains(own, int(g)) })
}

// outside returns who the user is in the user namespace of this process.
func (p Process) outside() (Process, error) {
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

// idRange is a line of uid_map, see user_namespaces(7).
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

// User returns a user of the process by "name", "uid", "name:group" or "uid:gid", as the process's own /etc/passwd and /etc/group
// have it. A number needs no account.
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
		return nil, refuse("the worker may not see its files: it is not root")
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

// openWithin opens a regular file as the process that has the root would, all links resolved inside.
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
