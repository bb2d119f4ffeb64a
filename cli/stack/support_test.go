package stack

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestNodeFindsInterpretersInItsPath(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{
		filepath.Join(first, "bash"): 0o755, filepath.Join(second, "bash"): 0o755, filepath.Join(second, "python3.11"): 0o755,
		filepath.Join(first, "node"): 0o644, filepath.Join(first, "python3-config"): 0o755, filepath.Join(first, "ls"): 0o755,
	} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("python3.11", filepath.Join(second, "python3")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(first, "perl"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := findInterpreters(first + string(os.PathListSeparator) + filepath.Join(first, "none") + string(os.PathListSeparator) + second)
	if want := []string{"bash", "python3", "python3.11"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
