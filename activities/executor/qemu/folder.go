package qemu

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"switchyard/activities/executor"
)

const (
	// maxSocketPath is the capacity of a socket address, in bytes.
	maxSocketPath = 107
	// longestName is the longest socket name in the folder of a machine.
	longestName = "qmp2"
	// newPrefix is the name prefix of folders that have no record yet.
	newPrefix = ".new-"
	// staleAfter is the age at which a folder without a record counts as abandoned.
	staleAfter = time.Minute
)

// folder is the private folder of a machine.
type folder string

// folderName returns the name of the folder of an attempt.
func folderName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}

// checkSocketPaths rejects a folder of machines below which socket paths would be too long.
func checkSocketPaths(dir string) error {
	path := filepath.Join(dir, folderName(""), longestName)
	if len(path) > maxSocketPath {
		return fmt.Errorf("folder %s is too deep for virtual machines: socket paths such as %s have %d bytes and the limit is %d; "+
			"set a shorter --scratch-dir for the worker", dir, path, len(path), maxSocketPath)
	}
	return nil
}

// file returns the path of a file in the folder.
func (f folder) file(name string) string { return filepath.Join(string(f), name) }

// Files in the folder of a machine.
const (
	diskFile    = "disk.qcow2"
	seedFile    = "seed.iso"
	socketFile  = "qmp"
	socketFile2 = "qmp2" // for a worker whose predecessor hangs and holds the first socket
	consoleFile = "console"
	recordFile  = "vm.json"
	captureFile = "capture.qcow2" // a copy of the disk that is being written or read
	pidFile     = "pid"           // the process id of QEMU
	exitFile    = "exit"          // the exit code of QEMU, written once consoleFile is complete
)

// record is what a later worker needs to continue a machine.
type record struct {
	ID       string
	Identity executor.Identity
	// StartedAt is zero until QEMU has started.
	StartedAt time.Time
	// Env holds the variables of the attempt.
	Env map[string]string
	// User logs in with ClientKey, the node's private key as PEM. HostKey is the machine's public key in one line.
	User, Dir, ClientKey, HostKey string
	// Cgroup is the directory of the machine's cgroup, or empty if it has none.
	Cgroup string
}

// newFolder creates the folder of an attempt, and its parent, with its record.
func newFolder(parent string, r record) (folder, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of virtual machines: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, newPrefix)
	if err != nil {
		return "", fmt.Errorf("make the folder of a virtual machine: %w", err)
	}
	f := folder(filepath.Join(parent, folderName(r.ID)))
	if err = folder(temporary).writeRecord(r); err == nil {
		err = os.Rename(temporary, string(f))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("make the folder of a virtual machine: %w", err), os.RemoveAll(temporary))
	}
	return f, nil
}

// writeRecord replaces the record atomically.
func (f folder) writeRecord(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temporary := f.file(recordFile + ".new")
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, f.file(recordFile))
}

// readRecord returns the record. fs.ErrNotExist means that there is no such machine.
func (f folder) readRecord() (record, error) {
	text, err := os.ReadFile(f.file(recordFile))
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return record{}, fmt.Errorf("read %s: %w", f.file(recordFile), err)
	}
	if folderName(r.ID) != filepath.Base(string(f)) {
		return record{}, fmt.Errorf("read %s: the record belongs to another machine, %q", f.file(recordFile), r.ID)
	}
	return r, nil
}

// readNumber returns the number in a file, or false if the file does not exist or holds no number.
func (f folder) readNumber(name string) (int, bool) {
	text, err := os.ReadFile(f.file(name))
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil
}

// folders returns the folders of all machines and removes folders whose creation was abandoned.
func folders(parent string) ([]folder, error) {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []folder
	for _, entry := range entries {
		path := filepath.Join(parent, entry.Name())
		switch info, err := entry.Info(); {
		case err != nil || !entry.IsDir():
		case !strings.HasPrefix(entry.Name(), newPrefix):
			found = append(found, folder(path))
		case time.Since(info.ModTime()) > staleAfter:
			_ = os.RemoveAll(path) // best effort: the next call tries again
		}
	}
	return found, nil
}
