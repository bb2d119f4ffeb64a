package doctor

import (
	"context"
	"fmt"

	"github.com/shirou/gopsutil/v3/disk"

	"switchyard/activities/store"
)

const (
	// fewFiles is the limit of open files with which nothing works for long; someFiles is what a busy role needs.
	fewFiles, someFiles = 1024, 8192
)

func checkOpenFiles() Finding {
	limit, err := openFiles()
	if err != nil {
		return skipped("the limit of open files is unknown: %v", err)
	}
	return judgeOpenFiles(limit)
}

func judgeOpenFiles(limit uint64) Finding {
	remedy := "raise it: LimitNOFILE=65536 in the unit, or `ulimit -n 65536`"
	switch {
	case limit < fewFiles:
		return failed(remedy, "this process may have %d files open, at most", limit)
	case limit < someFiles:
		return warning(remedy, "this process may have %d files open, at most", limit)
	}
	return ok("a process may have %d files open", limit)
}

// checkDisks checks the free space of folders, once for each file system.
func checkDisks(ctx context.Context, folders []Folder) []Finding {
	var found []Finding
	seen := map[disk.UsageStat]bool{}
	for _, folder := range folders {
		usage, err := disk.UsageWithContext(ctx, existingParent(folder.Path))
		if err != nil {
			found = append(found, skipped("the free space of the %s %s is unknown: %v", folder.What, folder.Path, err))
			continue
		}
		same := disk.UsageStat{Total: usage.Total, InodesTotal: usage.InodesTotal, Fstype: usage.Fstype}
		f := judgeDisk(folder, usage.Free, usage.Total)
		if !seen[same] || f.Result != OK {
			found = append(found, f)
		}
		seen[same] = true
	}
	return found
}

// size formats a number of bytes.
func size(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// plenty is the free space of a large file system above which there is nothing to say, in bytes.
const plenty = 5 << 30

func judgeDisk(folder Folder, free, total uint64) Finding {
	remedy := "free space, or move the " + folder.What + " to another file system"
	switch {
	case free < store.Floor(total):
		return failed(remedy, "the file system of the %s %s has %s left of %s, too little for logs", folder.What, folder.Path, size(free), size(total))
	case free < min(plenty, total/10):
		return warning(remedy, "the file system of the %s %s has %s left of %s", folder.What, folder.Path, size(free), size(total))
	}
	return ok("the file system of the %s %s has %s left of %s", folder.What, folder.Path, size(free), size(total))
}
