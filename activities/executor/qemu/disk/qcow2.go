package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Layout of a qcow2 header, from QEMU's docs/interop/qcow2.txt. Numbers are big-endian.
const (
	qcow2Magic = "QFI\xfb"
	// qcow2HeaderSize is the length of a version 2 header. Only that part of later headers is read, plus the features.
	qcow2HeaderSize = 72
	// qcow2FeaturesEnd is the end offset of the incompatible features in version 3.
	qcow2FeaturesEnd = 80
)

// Incompatible features of version 3.
const (
	featureCorrupt  = 1 << 1
	featureDataFile = 1 << 2
)

// maxVirtualSize bounds the size of a disk. It is far above what a node has, and low enough that sums do not overflow.
const maxVirtualSize = 1 << 50

// errCut reports that the end of an image is missing.
var errCut = errors.New("the file is cut short; copy the image again")

// readQcow2Header returns the virtual size of a qcow2 image from the first bytes and the size of its file. It rejects
// images that name other files, need a key, or are marked as corrupt.
func readQcow2Header(begin []byte, fileSize int64) (virtualSize int64, err error) {
	if len(begin) < qcow2HeaderSize {
		return 0, errCut
	}
	version := binary.BigEndian.Uint32(begin[4:])
	if version != 2 && version != 3 {
		return 0, fmt.Errorf("qcow version %d is not supported; convert the image with `qemu-img convert -O qcow2`", version)
	}
	if binary.BigEndian.Uint64(begin[8:]) != 0 || binary.BigEndian.Uint32(begin[16:]) != 0 {
		return 0, errors.New("the image has a backing file; convert it to a complete image with `qemu-img convert -O qcow2`")
	}
	if binary.BigEndian.Uint32(begin[32:]) != 0 {
		return 0, errors.New("the image is encrypted; decrypt it with `qemu-img convert -O qcow2` and its key")
	}
	if version == 3 {
		if len(begin) < qcow2FeaturesEnd {
			return 0, errCut
		}
		features := binary.BigEndian.Uint64(begin[qcow2HeaderSize:])
		if features&featureDataFile != 0 {
			return 0, errors.New("the image has an external data file; convert it to a complete image with `qemu-img convert -O qcow2`")
		}
		if features&featureCorrupt != 0 {
			return 0, errors.New("the image is marked as corrupt; repair it with `qemu-img check -r all`")
		}
	}
	// QEMU reads anything past the end of the file as zeros.
	for _, table := range []int{40, 48} {
		if binary.BigEndian.Uint64(begin[table:]) >= uint64(fileSize) {
			return 0, errCut
		}
	}
	size := binary.BigEndian.Uint64(begin[24:])
	if size == 0 || size > maxVirtualSize {
		return 0, fmt.Errorf("disk size %d is out of range (1 byte to 1 PiB)", size)
	}
	return int64(size), nil
}
