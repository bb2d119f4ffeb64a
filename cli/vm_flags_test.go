package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFoldersOfDiskImagesAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.qcow2")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := (&vmFlags{images: []string{dir + "/"}}).config()
	if err != nil || !slices.Equal(cfg.Images, []string{dir}) {
		t.Errorf("%v, error %v", cfg, err)
	}
	for image, want := range map[string]string{"images": "absolute path", dir + "/none": "no such file", file: "not a folder"} {
		if _, err := (&vmFlags{images: []string{image}}).config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--vm-images %s: error %v, want %q", image, err, want)
		}
	}
}
