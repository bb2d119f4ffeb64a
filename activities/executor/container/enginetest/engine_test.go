package enginetest_test

import (
	"os/exec"
	"strings"
	"testing"

	"switchyard/activities/executor/container/enginetest"
)

func TestImage(t *testing.T) {
	image := enginetest.Image(t)
	out, err := exec.Command("docker", "run", "--rm", image, "sh", "-c", "echo $((40 + 2))").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "42" {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestRegistry(t *testing.T) {
	image, host := enginetest.Image(t), enginetest.Registry(t, nil)
	name := host + "/a/b:1"
	for _, args := range [][]string{{"tag", image, name}, {"push", "-q", name}, {"rmi", name}, {"pull", "-q", name}, {"rmi", name}} {
		if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
			t.Fatalf("docker %v: %v: %s", args, err, out)
		}
	}
}
