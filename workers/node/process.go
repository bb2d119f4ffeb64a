package node

import (
	"context"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/process"
)

// longestComm is the maximum length of a process name in the Linux kernel.
const longestComm = 15

// systemProcesses returns the names of the running programs.
func systemProcesses(ctx context.Context) ([]string, error) {
	if runtime.GOOS == "linux" {
		// Reading /proc costs at most two small files per process, much less than the portable way.
		return procNames(ctx, os.DirFS("/proc"))
	}
	all, err := process.ProcessesWithContext(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range all {
		if name, err := p.NameWithContext(ctx); err == nil { // it may have ended
			names = append(names, name)
		}
	}
	return names, nil
}

// procNames reads the names of all processes from a file system like /proc. For a name that the
// kernel may have truncated, it adds the name from the command line.
func procNames(ctx context.Context, proc fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b, err := fs.ReadFile(proc, path.Join(e.Name(), "comm"))
		if err != nil {
			continue // it has ended
		}
		comm := strings.TrimSuffix(string(b), "\n")
		names = append(names, comm)
		if len(comm) < longestComm {
			continue
		}
		if b, err := fs.ReadFile(proc, path.Join(e.Name(), "cmdline")); err == nil {
			program, _, _ := strings.Cut(string(b), "\x00")
			// Programs under Wine have Windows paths.
			if program = program[strings.LastIndexAny(program, `/\`)+1:]; program != "" {
				names = append(names, program)
			}
		}
	}
	return names, nil
}
