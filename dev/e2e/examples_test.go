package e2e

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchyard/dev/scriptedmodel"
)

// expectation is the expected outcome of an example, which is in the file beside it.
type expectation struct {
	Exit int            `json:"exit"`
	Run  map[string]any `json:"run"`
	// Env is the environment of the command, which then runs the example itself.
	Env map[string]string `json:"env"`
	// Image is true if the example runs containers; the image is its input "image".
	Image bool `json:"image"`
	// Model is the script of the model for its agents, whose address is its input "provider".
	Model string `json:"model"`
}

// TestExamples runs the definitions in dev/examples that need no containers.
func TestExamples(t *testing.T) {
	t.Parallel()
	testExamples(t, "")
}

// testExamples runs the definitions in dev/examples that need the image, or no image if it is empty, and compares the
// outcome of each with the expectation, and its graph with the picture in docs/examples.
func testExamples(t *testing.T, image string) {
	files, err := filepath.Glob(filepath.Join(repository, "dev/examples/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	s := shared(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		want := readExpectation(t, name)
		if want.Image != (image != "") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"run", file, "-o", "json"}
			if want.Image {
				args = append(args, "--input", "image="+image)
			}
			if want.Model != "" {
				args = append(args, "--input", "provider="+startModel(t, filepath.Join(repository, want.Model)))
			}
			var env []string
			for name, value := range want.Env {
				env = append(env, name+"="+value)
			}
			if env == nil {
				args = append(args, "--gateway", s.Gateway)
			}
			p := startWith(t, env, args...)
			if code := p.Wait(); code != want.Exit {
				t.Errorf("exit code %d, want %d", code, want.Exit)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(p.Stdout.String()), &got); err != nil {
				t.Fatalf("standard output is not one JSON document: %v", err)
			}
			if diff := cmp.Diff(want.Run, only(want.Run, got)); diff != "" {
				t.Errorf("the run differs (-want +got):\n%s", diff)
			}
			checkPicture(t, name, p.Stdout.String())
		})
	}
}

// readExpectation reads the expected outcome of an example.
func readExpectation(t *testing.T, name string) expectation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "dev/examples", name+".want.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want expectation
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return want
}

// startModel starts a model that follows the script in a file, and returns its address.
func startModel(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return startScript(t, text)
}

// startScript starts a model that follows a script, and returns its address.
func startScript(t *testing.T, text []byte) string {
	t.Helper()
	script, err := scriptedmodel.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(scriptedmodel.New(script))
	t.Cleanup(server.Close)
	return server.URL
}

// only returns the part of got that want describes. The set of tasks is kept whole.
func only(want map[string]any, got any) any {
	object, ok := got.(map[string]any)
	if !ok {
		return got
	}
	part := map[string]any{}
	for key, value := range object {
		expected, said := want[key]
		if inner, isObject := expected.(map[string]any); isObject && key != "output" && key != "context" {
			part[key] = only(inner, value)
			if key == "tasks" {
				for name := range value.(map[string]any) {
					if _, named := inner[name]; !named {
						part[key].(map[string]any)[name] = "a task that is not expected"
					}
				}
			}
		} else if said {
			part[key] = value
		}
	}
	return part
}
