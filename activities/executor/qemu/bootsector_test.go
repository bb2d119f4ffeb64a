//go:build linux

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

// What a boot sector does after some ticks, or with the power button.
const (
	ticksOn   = 0
	powersOff = 'o'
	restarts  = 'r'
	isDeaf    = 'd'
)

// Where in a boot sector the number of ticks and the action are.
const ticksAt, actionAt = 506, 508

// newImage returns a disk with the boot sector.
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
