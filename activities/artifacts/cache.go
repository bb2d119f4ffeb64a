package artifacts

import (
	"container/list"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/shirou/gopsutil/v3/disk"
	"golang.org/x/sync/singleflight"

	"switchyard/activities/store"
)

// Cache keeps chunks in the files of a folder that belongs to this process. When it has more bytes than its limit, or
// the file system little free space, it drops those that were not used for the longest time. It is safe for concurrent use; a nil Cache keeps nothing.
type Cache struct {
	dir   string
	limit int64
	fetch singleflight.Group

	mu     sync.Mutex
	files  map[string]*list.Element // of *cached
	recent list.List                // the most recently used first
	bytes  int64
}

// cached is a chunk in the cache.
type cached struct {
	name string
	size int64
	// verified is set once this process has written the chunk, or read it with the right digest.
	verified bool
}

// OpenCache opens the cache in a folder, which is created if necessary, with a limit in bytes. What an earlier process has left
// there is used, after its digest has been checked.
func OpenCache(dir string, limit int64) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the cache of artifacts: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cache of artifacts: %w", err)
	}
	c := &Cache{dir: dir, limit: limit, files: map[string]*list.Element{}}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue
		}
		if digest, err := hex.DecodeString(entry.Name()); err != nil || len(digest) != 32 || !info.Mode().IsRegular() {
			_ = os.RemoveAll(filepath.Join(dir, entry.Name())) // left by a killed process
			continue
		}
		c.insert(&cached{name: entry.Name(), size: info.Size()})
	}
	return c, nil
}

// open opens the file of a chunk that is cached and verified, or returns nil.
func (c *Cache) open(digest []byte) *os.File {
	if c == nil {
		return nil
	}
	name := hex.EncodeToString(digest)
	if one := c.use(name); one == nil || !one.verified {
		return nil
	}
	f, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		return nil
	}
	return f
}

// get returns the content of a chunk. If it is not cached, get calls fetch, once for all concurrent callers, and caches the
// content. The caller must not change it.
func (c *Cache) get(digest []byte, fetch func() ([]byte, error)) ([]byte, error) {
	if c == nil {
		return fetch()
	}
	name := hex.EncodeToString(digest)
	for {
		own := false
		content, err, _ := c.fetch.Do(name, func() (any, error) {
			own = true
			if content, ok := c.read(name, digest); ok {
				return content, nil
			}
			content, err := fetch()
			if err == nil {
				c.write(name, content)
			}
			return content, err
		})
		if err != nil && !own {
			continue // the other caller may have been cancelled
		}
		if err != nil {
			return nil, err
		}
		return content.([]byte), nil
	}
}

// read returns the content of a cached chunk.
func (c *Cache) read(name string, digest []byte) ([]byte, bool) {
	one := c.use(name)
	if one == nil {
		return nil, false
	}
	content, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil || int64(len(content)) != one.size || !one.verified && string(digestOf(content)) != string(digest) {
		c.drop(name)
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.files[name]; at != nil {
		at.Value.(*cached).verified = true
	}
	return content, true
}

// makeRoom drops chunks until the file system has as much free space as a store leaves on one, or the cache is empty.
func (c *Cache) makeRoom(size int64) {
	usage, err := disk.Usage(c.dir)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for free, floor := int64(usage.Free)-size, int64(store.Floor(usage.Total)); free < floor && c.recent.Len() > 0; {
		last := c.recent.Back().Value.(*cached)
		free += last.size
		c.remove(last.name)
	}
}

// write caches a chunk. A cache that cannot be written, such as on a full disk, only costs time.
func (c *Cache) write(name string, content []byte) {
	c.makeRoom(int64(len(content)))
	temp, err := os.CreateTemp(c.dir, "new-")
	if err != nil {
		return
	}
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), filepath.Join(c.dir, name))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.insert(&cached{name: name, size: int64(len(content)), verified: true})
}

// use moves a chunk to the front. It returns a copy of its entry, or nil if it is not cached.
func (c *Cache) use(name string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.files[name]
	if at == nil {
		return nil
	}
	c.recent.MoveToFront(at)
	one := *at.Value.(*cached)
	return &one
}

// insert adds a chunk whose file exists, and drops others while the cache is too large. The caller holds mu, or has the cache alone.
func (c *Cache) insert(one *cached) {
	if at := c.files[one.name]; at != nil {
		c.bytes -= at.Value.(*cached).size
		c.recent.Remove(at)
	}
	c.files[one.name] = c.recent.PushFront(one)
	for c.bytes += one.size; c.bytes > c.limit && c.recent.Len() > 0; {
		c.remove(c.recent.Back().Value.(*cached).name)
	}
}

// drop removes a chunk.
func (c *Cache) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(name)
}

// remove removes a chunk and its file, which readers may still have open. The caller holds mu.
func (c *Cache) remove(name string) {
	at := c.files[name]
	if at == nil {
		return
	}
	c.bytes -= c.recent.Remove(at).(*cached).size
	delete(c.files, name)
	_ = os.Remove(filepath.Join(c.dir, name)) // if this fails, OpenCache finds the file again
}
