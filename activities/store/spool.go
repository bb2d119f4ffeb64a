package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchyard/activities/filelock"
	"switchyard/activities/store/storekey"
)

// spool keeps values in the files of a folder on the node, in order of arrival, until they are removed. A killed process
// leaves them to the next one. Its methods may be called from several goroutines; the folder belongs to one process at a
// time.
//
// A file is named after its number, 16 hexadecimal digits. It holds a line, "put <checksum> <key>" or "new <checksum>
// <key>", and the value; "new" marks a value that is stored only if the key has none. Files are not synced: a killed
// process leaves whole files, and the CRC-32C detects a file that a power cut has torn.
type spool struct {
	dir   string
	limit int64
	lock  *filelock.Lock

	mu    sync.Mutex
	next  uint64
	bytes int64
	// queue holds the spooled values, oldest first. newest holds the last one of each key, and groups the number of
	// values in each group.
	queue  []*spooled
	newest map[string]*spooled
	groups map[string]int
}

// spooled is a value in a spool. Only failures changes.
type spooled struct {
	number   uint64
	key      string
	ifAbsent bool
	sum      uint32
	header   int64 // of the file's first line, in bytes
	size     int64 // of the whole file, in bytes
	// failures counts the uploads that failed although the store responded. It belongs to the goroutine that uploads the
	// value.
	failures int
}

// line returns the first line of the value's file.
func (v *spooled) line() string {
	kind := "put"
	if v.ifAbsent {
		kind = "new"
	}
	return fmt.Sprintf("%s %08x %s\n", kind, v.sum, v.key)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrSpoolFull is in the chain of the error of a Put if the store was away and the spool had no room.
var ErrSpoolFull = errors.New("the store is away, and the spool is full")

// SpoolLock is the lock file of a spool, which names the process that uses the spool.
const SpoolLock = "lock"

const (
	// lockWait is how long a spool waits for an earlier process that is ending to release the folder.
	lockWait  = 10 * time.Second
	lockPause = 100 * time.Millisecond
)

// openSpool opens a folder with its values, and creates the folder if necessary.
func openSpool(ctx context.Context, dir string, limit int64) (_ *spool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	s := &spool{dir: dir, limit: limit, newest: map[string]*spooled{}, groups: map[string]int{}}
	if s.lock, err = awaitLock(ctx, filepath.Join(dir, SpoolLock)); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open spool: %w", err), s.lock.Release())
	}
	return s, nil
}

// awaitLock waits until no other process holds the lock.
func awaitLock(ctx context.Context, path string) (*filelock.Lock, error) {
	deadline := time.Now().Add(lockWait)
	for {
		lock, err := filelock.Take(path)
		if _, held := errors.AsType[*filelock.HeldError](err); !held || time.Now().After(deadline) {
			return lock, err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// load reads the files that are in the folder.
func (s *spool) load() error {
	entries, err := os.ReadDir(s.dir) // in the order of their numbers
	if err != nil {
		return err
	}
	for _, entry := range entries {
		number, err := strconv.ParseUint(entry.Name(), 16, 64)
		switch {
		case strings.HasSuffix(entry.Name(), storekey.TemporarySuffix):
			_ = os.Remove(filepath.Join(s.dir, entry.Name())) // if this fails, the file costs only its space
			continue
		case err != nil || fileName(number) != entry.Name():
			continue
		}
		value, err := readHeader(s.dir, number)
		if err != nil {
			return err
		}
		s.next = number + 1
		if value == nil {
			// A power cut has torn the file.
			_ = os.Remove(filepath.Join(s.dir, entry.Name()))
			continue
		}
		s.enter(value)
	}
	return nil
}

func fileName(number uint64) string { return fmt.Sprintf("%016x", number) }

// readHeader reads the first line of a file. It returns nil if the line is invalid.
func readHeader(dir string, number uint64) (*spooled, error) {
	f, err := os.Open(filepath.Join(dir, fileName(number)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReaderSize(f, storekey.MaxKeyBytes+64).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != 3 {
		return nil, nil
	}
	sum, err := strconv.ParseUint(fields[1], 16, 32)
	v := &spooled{number: number, key: fields[2], ifAbsent: fields[0] == "new", sum: uint32(sum), header: int64(len(line)), size: info.Size()}
	if err != nil || v.line() != line || storekey.Check(v.key) != nil {
		return nil, nil
	}
	return v, nil
}

// enter adds a value to the indexes. The caller holds mu or is the only user of s.
func (s *spool) enter(v *spooled) {
	s.queue = append(s.queue, v)
	s.newest[v.key] = v
	s.groups[groupOf(v.key)]++
	s.bytes += v.size
}

// groupOf returns the name of the group of values that must be stored in their order: the chunks of one log form a group.
func groupOf(key string) string {
	if i := strings.LastIndexAny(key, "./"); i >= 0 && key[i] == '.' {
		return key[:i]
	}
	return key
}

// add spools a value. With ifAbsent it does so only if the key has none; existed reports whether it had. An eighth of the
// space is reserved for such values, which are results. Other values, mostly logs, cannot use it.
func (s *spool) add(key string, value []byte, ifAbsent bool) (added *spooled, existed bool, err error) {
	if err := storekey.Check(key); err != nil {
		return nil, false, err
	}
	v := &spooled{key: key, ifAbsent: ifAbsent, sum: crc32.Checksum(value, castagnoli)}
	v.header = int64(len(v.line()))
	v.size = v.header + int64(len(value))
	room := s.limit
	if !ifAbsent {
		room -= s.limit / 8
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ifAbsent && s.newest[key] != nil {
		return nil, true, nil
	}
	if s.bytes+v.size > room {
		return nil, false, fmt.Errorf("%w: %d MiB in %s", ErrSpoolFull, s.bytes>>20, s.dir)
	}
	v.number = s.next
	if err := writeFile(filepath.Join(s.dir, fileName(v.number)), []byte(v.line()), value); err != nil {
		return nil, false, fmt.Errorf("spool: %w", err)
	}
	s.next++
	s.enter(v)
	return v, false, nil
}

// writeFile creates a file atomically.
func writeFile(path string, parts ...[]byte) error {
	f, err := os.OpenFile(path+storekey.TemporarySuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+storekey.TemporarySuffix, path)
	}
	if err != nil {
		_ = os.Remove(path + storekey.TemporarySuffix)
	}
	return err
}

// get returns the newest value of a key, or ErrNotFound if there is none.
func (s *spool) get(key string) ([]byte, error) {
	s.mu.Lock()
	v := s.newest[key]
	s.mu.Unlock()
	if v == nil {
		return nil, ErrNotFound
	}
	return s.read(v)
}

// errTorn is the error of a value whose file is damaged.
var errTorn = errors.New("the value is torn")

// read returns a value, or ErrNotFound if it has been removed.
func (s *spool) read(v *spooled) ([]byte, error) {
	file, err := os.ReadFile(filepath.Join(s.dir, fileName(v.number)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if int64(len(file)) != v.size || crc32.Checksum(file[v.header:], castagnoli) != v.sum {
		return nil, fmt.Errorf("spool: %s: %w", v.key, errTorn)
	}
	return file[v.header:], nil
}

// waits reports whether other values of the key's group are spooled and must be stored first.
func (s *spool) waits(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups[groupOf(key)] > 0
}

// keys returns, in order, the spooled keys that start with prefix.
func (s *spool) keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(func(yield func(string) bool) {
		for key := range maps.Keys(s.newest) {
			if strings.HasPrefix(key, prefix) && !yield(key) {
				return
			}
		}
	})
}

// oldest returns up to n of the oldest values, each the first of its group.
func (s *spool) oldest(n int) []*spooled {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*spooled
	seen := map[string]bool{}
	// Beyond these values the queue is one long log, so searching further would be futile.
	for _, v := range s.queue[:min(len(s.queue), 64*n)] {
		if group := groupOf(v.key); !seen[group] {
			seen[group] = true
			found = append(found, v)
		}
		if len(found) == n {
			break
		}
	}
	return found
}

// holds reports whether a value is still in the spool.
func (s *spool) holds(v *spooled) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.queue, v)
}

// remove removes a value. It is a no-op if the value is nil or already removed.
func (s *spool) remove(v *spooled) error {
	if v == nil {
		return nil
	}
	s.mu.Lock()
	if i := slices.Index(s.queue, v); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.bytes -= v.size
		group := groupOf(v.key)
		if s.groups[group]--; s.groups[group] == 0 {
			delete(s.groups, group)
		}
		if s.newest[v.key] == v {
			delete(s.newest, v.key)
		}
	}
	s.mu.Unlock()
	if err := os.Remove(filepath.Join(s.dir, fileName(v.number))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// size returns how many values are spooled, and their total size.
func (s *spool) size() (values int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.bytes
}

// close releases the folder.
func (s *spool) close() error { return s.lock.Release() }
