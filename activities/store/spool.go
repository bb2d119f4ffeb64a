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

// spool keeps values in the files of a folder on the node, in the order in which
// they came, until they are taken out. A process that is killed leaves them
// to the next one. Its methods may be called from several goroutines; the folder
// belongs to one process at a time.
//
// A file is named after its number, 16 hexadecimal digits, and holds a line,
// "put <checksum> <key>" or "new <checksum> <key>", and the value; "new" is for a
// value that is to be stored only when there is none. Files are not synced: what
// a kill of the process leaves is whole, and the CRC-32C finds out what a power
// cut has torn.
type spool struct {
	dir   string
	limit int64
	lock  *filelock.Lock

	mu    sync.Mutex
	next  uint64
	bytes int64
	// queue has what is spooled, oldest first; newest the last of each key, and
	// groups how many there are of each group.
	queue  []*spooled
	newest map[string]*spooled
	groups map[string]int
}

// spooled is a value in a spool. It does not change, but for failures.
type spooled struct {
	number   uint64
	key      string
	ifAbsent bool
	sum      uint32
	header   int64 // of the file, in bytes
	size     int64 // of the file, in bytes
	// failures counts the uploads that failed although the store answered. The upload of the value owns it.
	failures int
}

// line is what the file of the value starts with.
func (v *spooled) line() string {
	kind := "put"
	if v.ifAbsent {
		kind = "new"
	}
	return fmt.Sprintf("%s %08x %s\n", kind, v.sum, v.key)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrSpoolFull is in the chain of the error of a Put that found no room in the
// spool while the store was away.
var ErrSpoolFull = errors.New("the store is away, and the spool is full")

const (
	// lockWait is how long a spool waits for the process before, which is ending,
	// to let go of the folder.
	lockWait  = 10 * time.Second
	lockPause = 100 * time.Millisecond
)

// openSpool opens a folder, which is made if need be, with what is in it.
func openSpool(ctx context.Context, dir string, limit int64) (_ *spool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	s := &spool{dir: dir, limit: limit, newest: map[string]*spooled{}, groups: map[string]int{}}
	if s.lock, err = awaitLock(ctx, filepath.Join(dir, "lock")); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open spool: %w", err), s.lock.Release())
	}
	return s, nil
}

// awaitLock waits until no other process has the lock.
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

// load takes in the files that are there.
func (s *spool) load() error {
	entries, err := os.ReadDir(s.dir) // in the order of their numbers
	if err != nil {
		return err
	}
	for _, entry := range entries {
		number, err := strconv.ParseUint(entry.Name(), 16, 64)
		switch {
		case strings.HasSuffix(entry.Name(), storekey.TemporarySuffix):
			_ = os.Remove(filepath.Join(s.dir, entry.Name())) // costs its room, no more
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
			// A power cut has torn it.
			_ = os.Remove(filepath.Join(s.dir, entry.Name()))
			continue
		}
		s.enter(value)
	}
	return nil
}

func fileName(number uint64) string { return fmt.Sprintf("%016x", number) }

// readHeader reads what a file is about; nil when it says nothing sensible.
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

// enter takes a value into the books. The caller holds mu, or has s alone.
func (s *spool) enter(v *spooled) {
	s.queue = append(s.queue, v)
	s.newest[v.key] = v
	s.groups[groupOf(v.key)]++
	s.bytes += v.size
}

// groupOf names the values that have to be stored in the order in which they
// came: the chunks of one log.
func groupOf(key string) string {
	if i := strings.LastIndexAny(key, "./"); i >= 0 && key[i] == '.' {
		return key[:i]
	}
	return key
}

// add spools a value, with ifAbsent unless there is one under the key, which
// existed says. An eighth of the room is for such values, which are results; the
// rest, mostly logs, does without.
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

// writeFile makes a file that is there whole or not at all.
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

// get returns the newest value of a key; ErrNotFound without one.
func (s *spool) get(key string) ([]byte, error) {
	s.mu.Lock()
	v := s.newest[key]
	s.mu.Unlock()
	if v == nil {
		return nil, ErrNotFound
	}
	return s.read(v)
}

// errTorn is the error of a value that is not what it was.
var errTorn = errors.New("the value is torn")

// read returns a value; ErrNotFound when it has been removed.
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

// waits reports whether there are values that are to be stored before one under key.
func (s *spool) waits(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups[groupOf(key)] > 0
}

// keys returns the keys that start with prefix in their order.
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
	// Beyond that it is one long log, and looking further would be in vain.
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

// holds reports whether a value has not been removed.
func (s *spool) holds(v *spooled) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.queue, v)
}

// remove takes a value out. A nil value is none, and one that is out already stays so.
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

// size is how much there is.
func (s *spool) size() (values int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.bytes
}

// close lets go of the folder.
func (s *spool) close() error { return s.lock.Release() }
