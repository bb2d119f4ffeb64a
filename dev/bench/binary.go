package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// buildBinary builds the switchyard of this tree in a new folder. The caller must remove the folder.
func buildBinary(ctx context.Context) (binary, dir string, err error) {
	if dir, err = os.MkdirTemp("", "switchyard-bench-"); err != nil {
		return "", "", err
	}
	binary = filepath.Join(dir, "switchyard")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		_ = os.RemoveAll(dir) // best effort: it is a temporary folder
		return "", "", fmt.Errorf("build: %w", err)
	}
	return binary, dir, nil
}
