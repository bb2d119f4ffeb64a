//go:build unix

package tool

import (
	"os"
	"syscall"
)

// openFlags keep open from waiting for the other end of a pipe, and from acquiring a terminal.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC

// owner is the owner of a workspace: the sandbox user, once commands have run in a sandbox.
type owner struct {
	// differs is false if files belong to the worker's own user, or the worker cannot change their owner.
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

// giveFile gives an open file to the owner.
func (o owner) giveFile(f *os.File) error {
	if !o.differs {
		return nil
	}
	return f.Chown(o.uid, o.gid)
}

// giveDir gives a directory, or a link itself, to the owner.
func (o owner) giveDir(parent *os.Root, name string) error {
	if !o.differs {
		return nil
	}
	return parent.Lchown(name, o.uid, o.gid)
}
