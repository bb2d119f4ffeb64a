package sandboxinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Name is the argv[0] of this program while it builds a sandbox.
const Name = "switchyard-sandbox"

// Descriptors of a sandbox that is being built.
const (
	sayPipe  = 3
	planPipe = 4
	// firstSpace is there for plans that enter.
	firstSpace = 5
)

// ExecMessage is said before the program is executed; the number of the error follows when
// it cannot be.
const ExecMessage = "exec "

// Plan says what is to be built, and what runs in it then.
type Plan struct {
	// Parent is the worker.
	Parent int
	// User is the id of the user and of its only group.
	User          int
	Path          string
	Argv, Environ []string
	// Dir is the working directory. All directories are absolute.
	Dir string
	// Workspace, Temp and Shared may be written to, and Temp is /tmp, too; empty: there is none.
	Workspace, Temp, Shared string
	// NodeNetwork leaves the node's network to the sandbox.
	NodeNetwork bool
	// ShmBytes bounds /dev/shm; 0: half of the machine's memory.
	ShmBytes int64
	// Join are the files of the cgroups that it goes into.
	Join []string
	// Enter says that there is a sandbox already: its namespaces are the descriptors from firstSpace on, in the order of
	// EnteredSpaces. No directory but Dir counts then, nor does NodeNetwork.
	Enter bool
}

// Run builds a sandbox and executes the program in it; it does not return.
func Run() {
	// What counts is the thread that executes: the others end then.
	runtime.LockOSThread()
	unix.CloseOnExec(sayPipe)
	unix.CloseOnExec(planPipe)
	say := os.NewFile(sayPipe, "say")
	plan, err := readPlan()
	if err == nil {
		err = plan.build()
	}
	if err != nil {
		_, _ = io.WriteString(say, err.Error())
		os.Exit(1)
	}
	_, _ = io.WriteString(say, ExecMessage)
	err = syscall.Exec(plan.Path, plan.Argv, plan.Environ)
	errno, _ := errors.AsType[syscall.Errno](err)
	_, _ = io.WriteString(say, strconv.Itoa(int(errno)))
	os.Exit(1)
}

func readPlan() (*Plan, error) {
	text, err := io.ReadAll(io.NewSectionReader(os.NewFile(planPipe, "plan"), 0, math.MaxInt64))
	if err != nil {
		return nil, fmt.Errorf("read what to build: %w", err)
	}
	plan := &Plan{}
	return plan, json.Unmarshal(text, plan)
}

// build makes this process the inside of the sandbox.
func (p *Plan) build() error {
	// While they can be written to.
	var joins []*os.File
	for _, path := range p.Join {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
		joins = append(joins, f)
	}
	if err := p.ownStreams(); err != nil {
		return err
	}
	if p.Enter {
		if err := p.enter(); err != nil {
			return err
		}
	} else {
		if err := p.network(); err != nil {
			return err
		}
		if err := p.mount(); err != nil {
			return err
		}
	}
	for _, f := range joins {
		if _, err := f.WriteString("0"); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
	}
	return p.dropPrivileges()
}

// ownStreams lets the user open its own streams by their names, such as /dev/stdout.
func (p *Plan) ownStreams() error {
	first := 1
	if p.Enter {
		first = 0
	}
	for fd := first; fd <= 2; fd++ {
		var info unix.Stat_t
		if err := unix.Fstat(fd, &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFIFO {
			continue
		}
		if err := unix.Fchown(fd, p.User, p.User); err != nil {
			return fmt.Errorf("give the streams: %w", err)
		}
	}
	return nil
}
