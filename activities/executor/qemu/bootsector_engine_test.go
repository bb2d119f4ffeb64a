//go:build linux && engines

package qemu

import (
	_ "embed"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// bootSector is the program of a machine that prints that it ticks: testdata/bootsector.s.
//
//go:embed testdata/bootsector.bin
var bootSector []byte

// Actions of a boot sector after a number of ticks, or on the power button.
const (
	ticksOn   = 0
	powersOff = 'o'
	restarts  = 'r'
	isDeaf    = 'd'
)

// Offsets of the number of ticks and of the action in a boot sector.
const ticksAt, actionAt = 506, 508

// newImage returns the path of a disk with the boot sector.
func newImage(t *testing.T, ticks uint16, action byte) string {
	t.Helper()
	disk := make([]byte, 1<<20)
	copy(disk, bootSector)
	binary.LittleEndian.PutUint16(disk[ticksAt:], ticks)
	disk[actionAt] = action
	path := filepath.Join(t.TempDir(), "disk.raw")
	if err := os.WriteFile(path, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
