//go:build engines

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"switchyard/dev/browsertest"
	"switchyard/dev/processes"
)

// screenshotsVariable names the folder to which `task screenshots` writes the screenshots of the README.
const screenshotsVariable = "SWITCHYARD_SCREENSHOTS"

// maxScreenshot is the largest size of a screenshot, in bytes.
const maxScreenshot = 200_000

// releaseDefinition is a run that looks realistic and waits for a gate in its middle.
const releaseDefinition = `
name: release
inputs: { version: { default: "2.4.0" } }
tasks:
  checkout: { type: shell, spec: { command: sleep 1.2 } }
  lint: { type: shell, dependsOn: [checkout], spec: { command: sleep 2 }, resources: { cores: 0 } }
  build-amd64: { type: shell, dependsOn: [checkout], spec: { command: sleep 3 }, resources: { cores: 0 } }
  build-arm64: { type: shell, dependsOn: [checkout], spec: { command: 'sleep 1.5; test "$SWITCHYARD_ATTEMPT" != 0' }, retry: { backoffMs: 500 }, resources: { cores: 0 } }
  unit-tests: { type: shell, dependsOn: [checkout], parallel: 24, concurrency: 4, spec: { command: 'sleep 0.5; test "$SWITCHYARD_INDEX" -lt 15 || while ! test -e %[1]s; do sleep 0.2; done' }, resources: { cores: 0 } }
  train: { type: shell, dependsOn: [checkout], constraints: { requiresGpu: true }, spec: { command: sleep 1 } }
  package: { type: shell, dependsOn: [build-amd64, build-arm64], spec: { command: sleep 1 }, resources: { cores: 0 } }
  integration: { type: shell, dependsOn: [package], spec: { command: 'while ! test -e %[1]s; do sleep 0.2; done' }, resources: { cores: 0 } }
  sign-off: { type: approval, dependsOn: [package, lint], spec: { message: 'Ship ${{ workflow.input.version }}?', roles: [operator] } }
  publish: { type: shell, dependsOn: [sign-off, integration, unit-tests, train], spec: { command: echo published } }
`

// TestScreenshots takes the screenshots of the README from a real fleet.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv(screenshotsVariable)
	if folder == "" {
		t.Skipf("it writes the screenshots of the README to the folder %s: run it with `task screenshots`", screenshotsVariable)
	}
	w := newWorld(t, "--max-parallel", "16")
	id := w.Submit(t, fmt.Sprintf(releaseDefinition, w.gates+"/release"))
	w.AwaitTask(t, id, "sign-off", "paused")
	w.AwaitTask(t, id, "integration", "running")
	processes.Await(t, "the instances before the gate have ended", func() bool { return w.instances(t, id, "unit-tests", "completed") >= 15 })
	tab := browsertest.NewProfile(t).Tab(w.Gateway)
	tab.SetViewport(1280)
	tab.SetTheme(browsertest.Light)
	for _, shot := range []struct{ name, path, text string }{
		{"page-overview.png", "/", "no-such-node"},
		{"page-run.png", "/ui/runs/" + id, "sign-off"},
	} {
		tab.Open(shot.path)
		tab.WaitText("main", shot.text)
		tab.WaitTrue("document.body.dataset.live == 'live'")
		path := filepath.Join(folder, shot.name)
		tab.Screenshot(path)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxScreenshot {
			t.Errorf("%s has %d bytes, more than %d", path, info.Size(), maxScreenshot)
		}
	}
	tab.Check(t)
}
