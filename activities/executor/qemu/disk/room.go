package disk

import "fmt"

// reserve is the space that must stay free on a file system, because a full one would stop every task of the node.
const reserve = 1 << 30

// checkRoom refuses to write a number of bytes to a folder if less than the reserve would stay free.
func checkRoom(folder string, bytes int64) error {
	free, err := freeBytes(folder)
	if err != nil {
		return err
	}
	return checkFree(folder, free, bytes)
}

// checkFree makes the decision of checkRoom.
func checkFree(folder string, free, bytes int64) error {
	switch {
	case free >= reserve+bytes:
		return nil
	case bytes == 0:
		return fmt.Errorf("%s has only %s free; a disk needs at least %s (remove files, or stop machines on this node)",
			folder, formatSize(free), formatSize(reserve))
	default:
		return fmt.Errorf("%s has only %s free; an image of %s needs %s in addition to its size (remove files, or stop machines on this node)",
			folder, formatSize(free), formatSize(bytes), formatSize(reserve))
	}
}
