package disk

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Image formats.
const (
	FormatQcow2 = "qcow2"
	FormatRaw   = "raw"
)

const (
	// beginSize is how much of a file is read to recognize its format: up to the descriptor of a CD.
	beginSize = 34 << 10
	// bootMarkAt is the offset of bootMark, which ends a boot sector.
	bootMarkAt = 510
	bootMark   = "\x55\xaa"
	// gptMark begins the second sector, of 512 or 4096 bytes, of a disk with a GPT.
	gptMark = "EFI PART"
)

// otherFormats lists formats that are refused, by a mark and its offset in the file.
var otherFormats = []struct {
	at          int
	mark, named string
	compressed  bool
}{
	{0, "KDMV", "vmdk", false},
	{0, "COWD", "vmdk", false},
	{0, "vhdxfile", "vhdx", false},
	{0, "conectix", "vhd", false},
	{0x40, "\x7f\x10\xda\xbe", "vdi", false},
	{0, "QED\x00", "qed", false},
	{0, "WithoutFreeSpace", "parallels", false},
	{0, "WithouFreSpacExt", "parallels", false},
	{0, "LUKS\xba\xbe", "encrypted (LUKS)", false},
	{0, "\x1f\x8b", "gzip", true},
	{0, "\xfd7zXZ\x00", "xz", true},
	{0, "\x28\xb5\x2f\xfd", "zstd", true},
	{0, "BZh", "bzip2", true},
	{0, "PK\x03\x04", "zip", true},
}

// recognize returns the format of an image from the first bytes and the name of its file.
func recognize(begin []byte, name string) (format string, err error) {
	has := func(at int, mark string) bool { return len(begin) >= at && bytes.HasPrefix(begin[at:], []byte(mark)) }
	switch {
	case len(begin) == 0:
		return "", errors.New("not a disk image: the file is empty")
	case has(0, qcow2Magic):
		return FormatQcow2, nil
	case isText(begin):
		return "", errors.New("not a disk image: the file contains text")
	}
	for _, other := range otherFormats {
		switch {
		case !has(other.at, other.mark):
		case other.compressed:
			return "", fmt.Errorf("the file is compressed with %s; decompress it (images must be qcow2 or raw)", other.named)
		default:
			return "", fmt.Errorf("format %s is not supported; convert the image with `qemu-img convert -O qcow2`", other.named)
		}
	}
	named := slices.Contains([]string{".raw", ".img"}, strings.ToLower(filepath.Ext(name)))
	if named || has(bootMarkAt, bootMark) || has(512, gptMark) || has(4096, gptMark) {
		return FormatRaw, nil
	}
	return "", errors.New("not a disk image: not qcow2, and without a boot sector or partition table; " +
		"a raw image without them must have a name that ends in .raw or .img")
}

// isText reports whether the first sector of a file is text, which is never true of a disk.
func isText(begin []byte) bool {
	sector := begin[:min(len(begin), 512)]
	for len(sector) > 0 {
		r, size := utf8.DecodeRune(sector)
		cut := r == utf8.RuneError && len(sector) < utf8.UTFMax && len(begin) > len(sector)
		if !cut && (r == utf8.RuneError || r < ' ' && !strings.ContainsRune("\t\r\n\f\x1b", r)) {
			return false
		}
		sector = sector[size:]
	}
	return true
}
