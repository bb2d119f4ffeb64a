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

// File descriptors of the process that builds a sandbox.
const (
	sayPipe  = 3
	planPipe = 4
	// firstSpace is open for plans with Enter.
	firstSpace = 5
)

// ExecMessage is written to the starter before the program is executed. If that fails, the number of the error follows.
const ExecMessage = "exec "

// Plan describes a sandbox and the program that runs in it.
type Plan struct {
	// Parent is the PID of the worker.
	Parent int
	// User is the id of the user and of the user's only group.
	User          int
	Path          string
	Argv, Environ []string
	// Dir is the working directory. All directories are absolute.
	Dir string
	// Workspace, Temp, Files and Shared are writable, and Temp is also mounted at /tmp. Each may be "".
	Workspace, Temp, Files, Shared string
	// NodeNetwork gives the sandbox the node's network.
	NodeNetwork bool
	// ShmBytes bounds /dev/shm; 0 means half of the machine's memory.
	ShmBytes int64
	// Join lists the cgroup files through which the process enters its cgroups.
	Join []string
	// Enter joins an existing sandbox, whose namespaces are the descriptors from firstSpace on, in the order of
	// EnteredSpaces. All directories except Dir are then ignored, and so is NodeNetwork.
	Enter bool
}

// Run builds a sandbox and executes the program in it. It does not return.
func Run() {
	// Only the executing thread matters, since exec ends the others.
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
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	plan := &Plan{}
	return plan, json.Unmarshal(text, plan)
}

// build turns this process into the inside of the sandbox.
func (p *Plan) build() error {
	// Open them while they are still writable.
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

// ownStreams lets the user open its own streams by name, such as /dev/stdout.
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
			return fmt.Errorf("hand over the streams: %w", err)
		}
	}
	return nil
}
