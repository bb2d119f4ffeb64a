package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// memory prints the peak memory of `switchyard run`, with everything embedded, for a fan-out of the given number of
// tasks.
func memory(ctx context.Context, tasks int) error {
	binary, dir, err := buildBinary(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	definition := filepath.Join(dir, "wide.yaml")
	var text strings.Builder
	text.WriteString("name: wide\ntasks:\n")
	for i := range tasks {
		fmt.Fprintf(&text, "  t%d: { type: shell, spec: { command: 'true' }, resources: { cores: 0 } }\n", i)
	}
	if err := os.WriteFile(definition, []byte(text.String()), 0o600); err != nil {
		return err
	}
	run := exec.CommandContext(ctx, binary, "run", definition, "--max-parallel", fmt.Sprint(window))
	run.Stderr = nil
	if err := run.Run(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	// Linux reports KiB.
	peak := run.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	fmt.Printf("| memory | peak memory of `run`, fan-out of %d | %d MiB | | |\n", tasks, peak)
	return nil
}
