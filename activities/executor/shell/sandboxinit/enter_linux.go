package sandboxinit

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// EnteredSpaces are the namespaces that a Plan with Enter joins, as /proc/PID/ns names them, in the order of their descriptors.
var EnteredSpaces = []string{"net", "ipc", "mnt"}

// enter joins the namespaces of a sandbox, on this thread, which executes the program. It ends in the working directory.
func (p *Plan) enter() error {
	// The thread has a root and a working directory of its own then, which its mounts demand.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter the sandbox: %w", err)
	}
	for i, name := range EnteredSpaces {
		unix.CloseOnExec(firstSpace + i)
		if err := unix.Setns(firstSpace+i, 0); err != nil {
			return fmt.Errorf("enter the sandbox: join its %s namespace: %w", name, err)
		}
	}
	if err := unix.Chdir(p.Dir); err != nil {
		return fmt.Errorf("%s%s: %w", dirMessage, p.Dir, err)
	}
	return nil
}

// dirMessage begins the error of a working directory that cannot be entered.
const dirMessage = "working directory: "
