//go:build linux && engines

package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/qemu/disk"
	"switchyard/dev/testneeds"
)

// Variables that turn the test program into a worker with one machine.
const (
	workerDir, workerImage = "SWITCHYARD_TEST_VM_DIR", "SWITCHYARD_TEST_VM_IMAGE"
	workerRun              = "SWITCHYARD_TEST_VM_RUN"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerDir); dir != "" {
		fmt.Fprintln(os.Stderr, work(dir, os.Getenv(workerImage), os.Getenv(workerRun)))
		os.Exit(1)
	}
	testneeds.Parallel(4)
	testneeds.NoLeaks(m)
}

// work runs a machine until this process is killed.
func work(dir, image, run string) error {
	images, err := disk.NewImages(disk.Options{CacheDir: dir + "-images", Directories: []string{"/"}})
	if err != nil {
		return err
	}
	program, err := Find()
	if err != nil {
		return err
	}
	e, err := New(Options{Dir: dir, Images: images, Program: program})
	if err != nil {
		return err
	}
	a := attemptOf(run, specOf(image))
	a.Stdout = os.Stdout
	_, err = e.Run(context.Background(), a, func() {})
	return errors.Join(errors.New("the machine has ended"), err)
}

func TestMachinesOutliveAWorkerThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir + "-images") })
	e := newExecutor(t, dir)
	r := newRun(t, newImage(t, 0, ticksOn), nil)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(program)
	worker.Env = append(os.Environ(), workerDir+"="+dir, workerImage+"="+r.Spec.GetFields()["vmImage"].GetStringValue(), workerRun+"="+r.Identity.Run)
	worker.Stdout, worker.Stderr = r.out, t.Output()
	worker.WaitDelay = time.Second
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = worker.Process.Kill() }()
	testneeds.Await(t, "its machine ticks", func() bool { return countTicks(r.out.String()) > 1 })
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	r.clear()
	r.checkSurvivor(t, e, true)
	r.reattach(t, e)
	r.awaitTicks(t)
	r.stop(errors.New("time is up"))
	if got := r.wait(t); got != (executor.Result{Stopped: true}) {
		t.Errorf("result %+v", got)
	}
}
