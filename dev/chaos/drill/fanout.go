package drill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// killFanOut kills a worker, the control process and the server, one after the other, during a fan-out that is too
// large for the run itself.
func killFanOut(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	n := y.Scale.Instances
	id, err := y.submit(definition{Name: "fan", Tasks: map[string]taskSpec{
		"each":  y.task(job{instances: n}),
		"after": y.task(job{after: []string{"each"}}),
	}})
	if err != nil {
		return err
	}
	if err := y.awaitBegun(id, "each", n/6); err != nil {
		return err
	}
	if err := y.kill("a"); err != nil {
		return err
	}
	if err := y.startWorker("a"); err != nil {
		return err
	}
	if err := y.awaitBegun(id, "each", n/2); err != nil {
		return err
	}
	if err := y.kill(gatewayName(0)); err != nil {
		return err
	}
	if err := y.pause(y.Scale.Short); err != nil {
		return err
	}
	if err := y.restartGateway(0); err != nil {
		return err
	}
	if err := y.awaitBegun(id, "each", n*3/4); err != nil {
		return err
	}
	if err := errors.Join(y.kill(serverName), y.restartServer()); err != nil {
		return err
	}
	r, err := y.finished(id)
	if err != nil {
		return err
	}
	if each := r.Tasks["each"]; each.Count == nil || *each.Count != n {
		return fmt.Errorf("run %s has completed with %v instances, not %d", id, each.Count, n)
	}
	return nil
}

// awaitBegun waits until n instances of a task have started.
func (y *Cluster) awaitBegun(id, task string, n int) error {
	return y.eventually(fmt.Sprintf("%d instances of %s of %s have begun", n, task, id), func() (bool, error) {
		files, err := os.ReadDir(filepath.Join(y.Dir, "marks"))
		begun := 0
		for _, f := range files {
			if strings.HasPrefix(f.Name(), id+"."+task+"[") {
				begun++
			}
		}
		return begun >= n, err
	})
}
