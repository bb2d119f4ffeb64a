//go:build unix

package tool

import (
	"os"
	"syscall"
)

// openFlags do not wait for the other end of a pipe, and take no terminal.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC

// owner is the user that a workspace belongs to: that of a sandbox once commands have run there.
type owner struct {
	// differs is false where files belong to the worker's own user, or the worker may not give them away.
	differs  bool
	uid, gid int
}

// ownerOf returns the owner of a directory.
func ownerOf(dir *os.Root) (owner, error) {
	info, err := dir.Stat(".")
	if err != nil {
		return owner{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || stat.Uid == 0 {
		return owner{}, nil
	}
	return owner{differs: true, uid: int(stat.Uid), gid: int(stat.Gid)}, nil
}

// giveFile makes an open file the owner's.
func (o owner) giveFile(f *os.File) error {
	if !o.differs {
		return nil
	}
	return f.Chown(o.uid, o.gid)
}

// giveDir makes a directory, or a link itself, the owner's.
func (o owner) giveDir(parent *os.Root, name string) error {
	if !o.differs {
		return nil
	}
	return parent.Lchown(name, o.uid, o.gid)
}
