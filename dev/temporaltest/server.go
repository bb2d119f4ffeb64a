package temporaltest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"switchyard/dev/testneeds"
)

// program is the server. `go run` keeps what it has linked in Go's build cache.
const program = "switchyard/dev/temporaltest/server"

// Start starts a server in memory that has the search attributes of runs, and returns its address. The server ends with
// stop, and at the latest with the process that has started it. Stop may be called once.
func Start() (address string, stop func() error, err error) {
	if err := testneeds.Sources(program); err != nil {
		return "", nil, err
	}
	cmd := exec.Command("go", "run", program)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error { return errors.Join(stdin.Close(), cmd.Wait()) }
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", nil, fmt.Errorf("go run %s printed no address: %w", program, errors.Join(err, stop()))
	}
	return strings.TrimSpace(line), stop, nil
}
