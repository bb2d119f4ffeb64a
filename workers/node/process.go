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

// longestComm is the most characters of a name that the Linux kernel keeps.
const longestComm = 15

// systemProcesses returns the names of the programs that run.
func systemProcesses(ctx context.Context) ([]string, error) {
	if runtime.GOOS == "linux" {
		// Much cheaper than the portable way: two small files a process at most.
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

// procNames reads the names of all processes from a file system at /proc. A
// name that the kernel may have cut is read from the command line too.
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
