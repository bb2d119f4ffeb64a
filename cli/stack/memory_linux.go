package stack

import (
	"bufio"
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// releaseMemory returns the pages of the program that only its start needed to the system: about a hundred MB of code
// and tables, of which an idle node uses little. The page cache restores a page when it is needed again. Only mappings
// without written pages are released, because their content is in the file.
func releaseMemory() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	var start, end uintptr
	own := false
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		line := lines.Text()
		var from, to uintptr
		var mode, offset, device, inode, path string
		if n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %s %s", &from, &to, &mode, &offset, &device, &inode, &path); n >= 6 {
			start, end, own = from, to, path == self && len(mode) > 1 && mode[1] != 'w'
			continue
		}
		var private int
		if n, _ := fmt.Sscanf(line, "Anonymous: %d kB", &private); n == 1 && own && private == 0 {
			if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED); errno != 0 {
				return fmt.Errorf("release memory pages of the program: %w", errno)
			}
		}
	}
	return nil
}
