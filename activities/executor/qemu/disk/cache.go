package disk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// keepReplaced is how long an older version stays after its last use. Between Ensure and CreateOverlay no overlay holds it.
	keepReplaced = 10 * time.Minute
	// keepUnused is how long any image stays after its last use.
	keepUnused = 30 * 24 * time.Hour
)

// shortDigest returns a name for a text.
func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// key is what the names of all versions of an image begin with.
func (s source) key() string { return shortDigest(s.kind + " " + s.ref) }

// fileName returns the name of an image in the cache: a digest of its source, one of its version, and its format.
func (s source) fileName(format string) string {
	return s.key() + "-" + shortDigest(s.version) + "." + format
}

// find returns the image of a source if the cache has it, and notes its use.
func (m *Images) find(ctx context.Context, s source) (Base, bool) {
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

// removePartial removes downloads that ended with their process.
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

// sweep removes images of the cache that are replaced or not used any more. Overlays that are made on them have names of
// their own for them.
func (m *Images) sweep() {
	entries, err := os.ReadDir(m.opts.CacheDir)
	if err != nil {
		m.opts.Logger.Warn("cannot list the cache of images", "error", err)
		return
	}
	used := map[string]time.Time{} // when the file was used last, by its name
	newest := map[string]string{}  // the name of the file used last, by key
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
