package sandboxinit

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// EnteredSpaces are the namespaces that a Plan with Enter joins, by their names in /proc/PID/ns and in the order of their
// descriptors.
var EnteredSpaces = []string{"net", "ipc", "mnt"}

// enter joins the namespaces of a sandbox on this thread, which executes the program. It leaves the thread in the working
// directory.
func (p *Plan) enter() error {
	// The thread needs a root and a working directory of its own before it can join a mount namespace.
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

// dirMessage is the prefix of the error for a working directory that cannot be entered.
const dirMessage = "working directory: "
