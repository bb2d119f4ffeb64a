//go:build engines

package taskrunner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"switchyard/activities/artifacts"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestFilesThatFillTheDiskOfANodeNameIt checks that a task whose files do not fit on its node fails with the place and the remedy.
func TestFilesThatFillTheDiskOfANodeNameIt(t *testing.T) {
	small, from := t.TempDir(), t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=2m"); err != nil {
		testneeds.Missing(t, "no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(small, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	b := newBench(t, nil)
	b.Folders.Workspaces = workspace.NewRoot(small, "")
	b.Artifacts = &artifacts.Library{Store: b.Store}
	if err := os.WriteFile(filepath.Join(from, "app"), make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	app, err := b.Artifacts.Save(t.Context(), storekey.Artifact("r-1/c", 0, "build", 1, "app"), "app", "app", root)
	if err != nil {
		t.Fatal(err)
	}
	req := request("test")
	req.Artifacts = &v1.Artifacts{In: []*v1.ArtifactIn{{From: "build.app"}}}
	req.Views = map[string]*historyv1.ParentView{"build": {State: v1.TaskCompleted, Result: &v1.TaskResult{Artifacts: []*v1.Artifact{app}}}}
	res := b.start(t.Context(), req).answer()
	if text := res.GetError(); res.GetReason() != v1.ReasonArtifacts || !strings.HasPrefix(text, "artifact build.app: ") ||
		!strings.Contains(text, "no space left on device; free space on node n for "+small+"/") || !strings.HasSuffix(text, "--scratch-dir") {
		t.Errorf("the answer is %v", res)
	}
}
