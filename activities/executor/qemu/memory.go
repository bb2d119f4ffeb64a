package qemu

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// overheadMB is what QEMU needs beside the memory of its machine: translated code of an emulated machine, and buffers.
const overheadMB = 256 + codeCacheMB

// checkMemory rejects a machine that does not fit in the node's available memory. meminfo is the text of /proc/meminfo.
// If it has no such figure, every machine is accepted.
func checkMemory(meminfo string, memoryMB int) error {
	for line := range strings.Lines(meminfo) {
		value, ok := strings.CutPrefix(line, "MemAvailable:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return nil
		}
		if available := kb >> 10; available < int64(memoryMB) {
			return fmt.Errorf("the node has only %d MB of memory available; the virtual machine needs %d MB; "+
				"lower resources.memoryMb, stop other tasks on the node, or lower the node's memory limit so that no machine is placed there", available, memoryMB)
		}
	}
	return nil
}

// readMeminfo returns the text of /proc/meminfo, or "".
func readMeminfo() string {
	text, _ := os.ReadFile("/proc/meminfo")
	return string(text)
}
