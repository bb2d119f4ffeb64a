package disk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// keepReplaced is how long an older version stays after its last use. No overlay holds it between Ensure and
	// CreateOverlay.
	keepReplaced = 10 * time.Minute
	// keepUnused is how long any image stays after its last use.
	keepUnused = 30 * 24 * time.Hour
)

// shortDigest returns a digest of a text that is short enough for a file name.
func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// key returns the common name prefix of all versions of an image.
func (s source) key() string { return shortDigest(s.kind + " " + s.ref) }

// fileName returns the file name of an image in the cache: a digest of its source, a digest of its version, and its
// format.
func (s source) fileName(format string) string {
	return s.key() + "-" + shortDigest(s.version) + "." + format
}

// findCached returns the image of a source if it is in the cache, and records its use.
func (m *Images) findCached(ctx context.Context, s source) (Base, bool) {
	for _, format := range []string{FormatQcow2, FormatRaw} {
		path := filepath.Join(m.opts.CacheDir, s.fileName(format))
		now := m.now()
		if err := os.Chtimes(path, now, now); err != nil {
			continue
		}
		info, err := inspect(ctx, path, path)
		if err == nil && info.Format == format {
			return Base{path, format, info.VirtualSize, true}, true
		}
		if ctx.Err() == nil {
			m.opts.Logger.Warn("a cached image is broken and will be downloaded again", "path", path, "error", err)
		}
	}
	return Base{}, false
}

// removePartial removes downloads that were cut off by the end of their process.
func (m *Images) removePartial() error {
	files, err := filepath.Glob(filepath.Join(m.opts.CacheDir, "*"+partialSuffix))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes cached images that are replaced or no longer used. Overlays keep their base alive by a hard link of
// their own.
func (m *Images) sweep() {
	entries, err := os.ReadDir(m.opts.CacheDir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		m.opts.Logger.Warn("cannot list the cache of images", "error", err)
		return
	}
	used := map[string]time.Time{} // last use by file name
	newest := map[string]string{}  // the most recently used file by key
	for _, entry := range entries {
		key, _, isImage := strings.Cut(entry.Name(), "-")
		info, err := entry.Info()
		if err != nil || !isImage || filepath.Ext(entry.Name()) == partialSuffix {
			continue
		}
		used[entry.Name()] = info.ModTime()
		if newest[key] == "" || info.ModTime().After(used[newest[key]]) {
			newest[key] = entry.Name()
		}
	}
	for name, at := range used {
		key, _, _ := strings.Cut(name, "-")
		keep := keepReplaced
		if newest[key] == name {
			keep = keepUnused
		}
		if m.now().Sub(at) <= keep {
			continue
		}
		if err := os.Remove(filepath.Join(m.opts.CacheDir, name)); err != nil {
			m.opts.Logger.Warn("cannot remove an image of the cache", "path", name, "error", err)
		}
	}
}
