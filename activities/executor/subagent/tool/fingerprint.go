package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
)

// Fingerprint returns a text that changes when the part of a directory that Pack would pack changes: paths, sizes,
// permissions and modification times. It reads no file content. Unpacking the result of Pack gives the same
// fingerprint. A directory that is too large for Pack has a fingerprint, too, of the part that was visited.
func Fingerprint(dir string) (string, error) {
	sum := sha256.New()
	err := walkPath(dir, func(e entry) error {
		if !isPacked(e.info) {
			return nil
		}
		fmt.Fprintf(sum, "%q %o", e.path, e.info.Mode()&(fs.ModeType|fs.ModePerm))
		switch e.info.Mode().Type() {
		case 0:
			fmt.Fprintf(sum, " %d %d", e.info.Size(), e.info.ModTime().UnixNano())
		case fs.ModeSymlink:
			target, err := e.dir.Readlink(e.info.Name())
			fmt.Fprintf(sum, " %q %v", target, err != nil)
		}
		sum.Write([]byte{'\n'})
		return nil
	})
	if isTooLarge(err) {
		fmt.Fprintln(sum, err)
		err = nil
	}
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// isPacked reports whether Pack includes a file of this type.
func isPacked(info fs.FileInfo) bool {
	switch info.Mode().Type() {
	case 0, fs.ModeDir, fs.ModeSymlink:
		return true
	}
	return false
}
