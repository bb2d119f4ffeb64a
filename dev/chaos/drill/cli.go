package drill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// answer holds the output and the exit code of a command.
type answer struct {
	code           int
	stdout, stderr string
}

// url returns the URL at which clients reach the gateway with the given number.
func (y *Cluster) url(gateway int) string {
	if y.dealer != nil {
		return "http://" + y.dealer.address
	}
	return y.gateways[gateway]
}

// command runs a command of the binary against the gateway with the given number.
func (y *Cluster) command(gateway int, args ...string) (answer, error) {
	cmd := exec.CommandContext(y.ctx, y.program(clientName), args...)
	cmd.Env = append(y.env(), "SWITCHYARD_GATEWAY="+y.url(gateway))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return answer{}, fmt.Errorf("switchyard %v: %w", args, err)
	}
	return answer{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}

// retryPause is the pause before a command is tried at the next gateway.
const retryPause = 50 * time.Millisecond

// must runs a command that has to exit with 0, and returns its output. If a gateway is unreachable, it tries the
// gateways in turn.
func (y *Cluster) must(args ...string) (string, error) {
	deadline := time.Now().Add(y.Scale.Limit)
	for i := 0; ; i++ {
		a, err := y.command(i%len(y.gateways), args...)
		switch {
		case err != nil:
			return "", err
		case a.code == 0:
			return a.stdout, nil
		case a.code != 3 || time.Now().After(deadline):
			return "", fmt.Errorf("switchyard %v exits with %d: %s", args, a.code, a.stderr)
		}
		if err := y.pause(retryPause); err != nil {
			return "", err
		}
	}
}

// ask runs a command and decodes its JSON document.
func (y *Cluster) ask(document any, args ...string) error {
	text, err := y.must(append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), document); err != nil {
		return fmt.Errorf("switchyard %v prints no JSON document: %w", args, err)
	}
	return nil
}

// run holds the fields of a run's JSON that a drill reads.
type run struct {
	ID         string             `json:"id"`
	State      string             `json:"state"`
	Reason     string             `json:"reason"`
	Error      string             `json:"error"`
	Generation int                `json:"generation"`
	Problem    string             `json:"problem"`
	Tasks      map[string]runTask `json:"tasks"`
}

// runTask is a task of a run, or an instance of one.
type runTask struct {
	State      string `json:"state"`
	Reason     string `json:"reason"`
	Error      string `json:"error"`
	Node       string `json:"node"`
	Attempt    int    `json:"attempt"`
	Suspicions int    `json:"suspicions"`
	// CompletedAt is when the task ended, or "".
	CompletedAt string `json:"completedAt"`
	Result      struct {
		ExitCode int            `json:"exitCode"`
		Stdout   string         `json:"stdout"`
		Output   map[string]any `json:"output"`
	} `json:"result"`
	// Count is the number of instances, or nil for a task that has not fanned out.
	Count    *int   `json:"count"`
	ChildRun string `json:"childRun"`
}

// submit starts a run and returns its ID.
func (y *Cluster) submit(d definition) (string, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(y.Dir, "definition-*.json")
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	var res struct {
		ID string `json:"id"`
	}
	// A gateway that died may already have started the run; the idempotency key finds it.
	key := filepath.Base(file.Name())
	args := []string{"submit", file.Name(), "--idempotency-key", key}
	// In an upgrade, one version must understand what the other one sends by default.
	if y.Earlier == "" {
		args = append(args, "--heartbeat-timeout", y.Scale.Heartbeat.String())
	}
	if err := y.ask(&res, args...); err != nil {
		return "", err
	}
	if res.ID == "" {
		return "", errors.New("submit prints no id")
	}
	return res.ID, nil
}

// get returns the current state of a run.
func (y *Cluster) get(id string) (*run, error) {
	var r run
	return &r, y.ask(&r, "runs", "get", id)
}

// instances returns all instances of a task by name.
func (y *Cluster) instances(id, task string) (map[string]runTask, error) {
	var list struct {
		Items []struct {
			Index int `json:"index"`
			runTask
		} `json:"items"`
		Next string `json:"nextPageToken"`
	}
	if err := y.ask(&list, "runs", "instances", id, task, "--limit", strconv.Itoa(maxInstances)); err != nil {
		return nil, err
	}
	if list.Next != "" {
		return nil, fmt.Errorf("task %s of %s has more than %d instances", task, id, maxInstances)
	}
	found := map[string]runTask{}
	for _, i := range list.Items {
		found[instance(task, i.Index)] = i.runTask
	}
	return found, nil
}

// maxInstances is the most instances of a task in a drill.
const maxInstances = 10_000

// instance returns the name of an instance of a task.
func instance(task string, number int) string { return fmt.Sprintf("%s[%d]", task, number) }

// awaitEnd waits until a run has ended.
func (y *Cluster) awaitEnd(id string) (r *run, err error) {
	err = y.eventually("run "+id+" ends", func() (bool, error) {
		r, err = y.get(id)
		return err == nil && v1.IsRunTerminal(r.State), err
	})
	if err != nil && r != nil {
		for name, task := range r.Tasks {
			if !v1.IsTaskTerminal(task.State) {
				err = fmt.Errorf("%w; task %s is %s on %q, attempt %d: %s", err, name, task.State, task.Node, task.Attempt, task.Error)
			}
		}
	}
	return r, err
}

// nodes returns the states of the nodes by name.
func (y *Cluster) nodes() (map[string]string, error) {
	var list struct {
		Items []struct {
			Name  string `json:"name"`
			State string `json:"state"`
		} `json:"items"`
	}
	if err := y.ask(&list, "nodes", "list"); err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, n := range list.Items {
		states[n.Name] = n.State
	}
	return states, nil
}

// open creates a gate file, so that the tasks that wait for it may end.
func (y *Cluster) open(gate string) error { return os.WriteFile(gate, nil, 0o600) }

// gate returns the path of a gate file that does not exist yet.
func (y *Cluster) gate(name string) string { return filepath.Join(y.Dir, "gate-"+name) }
