package embedded

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// fileLock is an advisory lock on a file beside the database. The kernel releases it when the process dies, however it
// dies. The file stays: removing it would let two processes lock two different files of one name.
type fileLock struct {
	// fd is a bare descriptor, because an os.File is closed when it becomes garbage, and a server that is never stopped
	// needs its lock to the end of the process.
	fd int
}

// lockDatabase takes the lock of the database at path, or says who has it.
func lockDatabase(path string) (*fileLock, error) {
	name := path + ".lock"
	fd, err := syscall.Open(name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock database %s: %w", path, err)
	}
	lock := &fileLock{fd: fd}
	err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("database %s is in use by another process%s", path, lockHolder(name)), lock.release())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock database %s: %w", path, err), lock.release())
	}
	// The process id only helps a person; the lock holds without it.
	if err := syscall.Ftruncate(fd, 0); err == nil {
		_, _ = syscall.Write(fd, fmt.Appendln(nil, os.Getpid()))
	}
	return lock, nil
}

// lockHolder is " (pid N)" where the holder left its id, else nothing.
func lockHolder(name string) string {
	text, err := os.ReadFile(name)
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return " (pid " + pid + ")"
	}
	return ""
}

func (l *fileLock) release() error {
	return syscall.Close(l.fd)
}
