package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// object is a part of a definition.
type object = map[string]any

func shellTask(command string) object {
	return object{"type": "shell", "spec": object{"command": command}, "resources": object{"cores": 0}}
}

func text(name string, tasks object) string {
	b, _ := json.Marshal(object{"name": name, "tasks": tasks}) // contains only strings and numbers
	return string(b)
}

func number(i int) string { return fmt.Sprintf("t%05d", i) }

// before returns the parent of the i-th task in a chain, or nil for the first one.
func before(i int) []string {
	if i == 0 {
		return nil
	}
	return []string{number(i - 1)}
}

// document returns a definition with n tasks; parents returns the parents of each.
func document(name string, n int, parents func(int) []string) func() string {
	return func() string {
		tasks := object{}
		for i := range n {
			task := shellTask("true")
			if parents != nil {
				task["dependsOn"] = parents(i)
			}
			tasks[number(i)] = task
		}
		return text(name, tasks)
	}
}

func level(n int) func() string {
	return func() string {
		tasks, all := object{"first": shellTask("true")}, []string{}
		for i := range n {
			task := shellTask("true")
			task["dependsOn"] = []string{"first"}
			tasks[number(i)] = task
			all = append(all, number(i))
		}
		last := shellTask("true")
		last["dependsOn"] = all
		tasks["last"] = last
		return text("level", tasks)
	}
}

func waiting(n int) func() string {
	return func() string {
		tasks := object{}
		for i := range n {
			tasks[number(i)] = object{"type": "shell", "spec": object{"command": "true"}, "resources": object{"cores": 1}}
		}
		return text("waiting", tasks)
	}
}

func loud(n int) func() string {
	const command = `head -c 65536 /dev/zero | tr '\0' x; printf '{"data": "%s"}' "$(head -c 8192 /dev/zero | tr '\0' y)" > "$SWITCHYARD_OUTPUT"`
	return func() string {
		tasks := object{}
		for i := range n {
			tasks[number(i)] = shellTask(command)
		}
		return text("loud", tasks)
	}
}

// heavy returns a definition of nearly 1 MiB.
func heavy(n int) func() string {
	return func() string {
		tasks := object{}
		for i := range n {
			task := shellTask("true")
			task["env"] = object{"FILLER": strings.Repeat("x", (1<<20)/n-140)}
			tasks[number(i)] = task
		}
		return text("heavy", tasks)
	}
}

func fanOut(n int) func() string {
	return func() string {
		// Each instance takes a core, so that no more run at once than with xargs.
		each := object{"type": "shell", "spec": object{"command": "true"}, "parallel": n, "batch": "auto"}
		return text("fan-out", object{"each": each})
	}
}

// again runs a definition several times in sequence.
func again(definition func() string, per, times int) func(context.Context, *host) (spent, int, error) {
	return func(ctx context.Context, h *host) (spent, int, error) {
		began := h.spent()
		for range times {
			if _, err := h.run(ctx, definition(), 1); err != nil {
				return spent{}, 0, err
			}
		}
		return h.spent().since(began), per * times, nil
	}
}

// xargs spawns n shells, two at a time.
func xargs(n int) func(context.Context, *host) (spent, int, error) {
	return func(ctx context.Context, _ *host) (spent, int, error) {
		cmd := exec.CommandContext(ctx, "xargs", "-P2", "-n1", "sh", "-c", "true")
		cmd.Stdin = bytes.NewReader(bytes.Repeat([]byte("x\n"), n))
		began := time.Now()
		err := cmd.Run()
		return spent{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, n, err
	}
}

// submitMany submits copies of a definition as fast as the gateway accepts them, and waits until all have completed.
func (h *host) submitMany(ctx context.Context, definition string, copies int) (id string, err error) {
	c := switchyardv1connect.NewRunServiceClient(http.DefaultClient, h.gateway)
	ids := make(chan string, copies)
	errs := make(chan error, submitters)
	for range submitters {
		go func() {
			for range copies / submitters {
				res, err := c.SubmitRun(ctx, connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: definition}}))
				if err != nil {
					errs <- err
					return
				}
				ids <- res.Msg.GetId()
			}
			errs <- nil
		}()
	}
	for range submitters {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return "", err
	}
	close(ids)
wait:
	for id = range ids {
		for {
			res, err := c.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: id}))
			switch code := connect.CodeOf(err); {
			case code == connect.CodeDeadlineExceeded || code == connect.CodeUnavailable: // its workflow is too busy to answer
			case err != nil:
				return "", err
			case res.Msg.GetRun().GetState() == v1.RunCompleted:
				continue wait
			case res.Msg.GetRun().GetState() != v1.RunRunning:
				return "", fmt.Errorf("run %s is %s", id, res.Msg.GetRun().GetState())
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return id, nil
}

// submitters is the number of clients that submit concurrently.
const submitters = 10
