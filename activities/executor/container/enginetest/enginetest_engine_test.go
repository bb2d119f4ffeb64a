//go:build linux && engines

package enginetest_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor/container/enginetest"
)

func TestImageRunsAShell(t *testing.T) {
	image := enginetest.Image(t)
	out, err := exec.Command("docker", "run", "--rm", image, "sh", "-c", "echo $((40 + 2))").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "42" {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestRegistryTakesPushesAndPulls(t *testing.T) {
	image, host := enginetest.Image(t), enginetest.Registry(t, nil)
	name := host + "/a/b:1"
	for _, args := range [][]string{{"tag", image, name}, {"push", "-q", name}, {"rmi", name}, {"pull", "-q", name}, {"rmi", name}} {
		if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
			t.Fatalf("docker %v: %v: %s", args, err, out)
		}
	}
}

// A container continues when its engine is killed and started again.
func TestContainersSurviveAKilledEngine(t *testing.T) {
	engine := enginetest.Own(t)
	ctx := t.Context()
	c, err := engine.Docker.ContainerCreate(ctx, &container.Config{Image: engine.Image, Cmd: []string{"sleep", "1000"}},
		&container.HostConfig{NetworkMode: "none", Init: new(true)}, nil, nil, "")
	if err == nil {
		err = engine.Docker.ContainerStart(ctx, c.ID, container.StartOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	before, err := engine.Docker.ContainerInspect(ctx, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	engine.Kill()
	if err := syscall.Kill(before.State.Pid, 0); err != nil {
		t.Errorf("the container went with its engine: %v", err)
	}
	engine.Start()
	after, err := engine.Docker.ContainerInspect(ctx, c.ID)
	if err != nil || after.State.Running {
		t.Errorf("the container runs on under an engine that was started again: %+v, %v", after.State, err)
	}
	engine.Restart()
	if _, err := engine.Docker.ContainerInspect(ctx, c.ID); err != nil {
		t.Error(err)
	}
}
