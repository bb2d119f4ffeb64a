package sandboxinit

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sandboxPrivileges are the Linux capabilities that building a sandbox needs.
var sandboxPrivileges = []struct {
	number int
	name   string
}{
	{unix.CAP_CHOWN, "CHOWN"},
	{unix.CAP_DAC_OVERRIDE, "DAC_OVERRIDE"},
	{unix.CAP_KILL, "KILL"},
	{unix.CAP_NET_ADMIN, "NET_ADMIN"},
	{unix.CAP_SETGID, "SETGID"},
	{unix.CAP_SETUID, "SETUID"},
	{unix.CAP_SETPCAP, "SETPCAP"},
	{unix.CAP_SYS_ADMIN, "SYS_ADMIN"},
	{unix.CAP_SYS_PTRACE, "SYS_PTRACE"},
}

// HasPrivileges returns an error that names the capabilities this process lacks for
// building sandboxes, or nil.
func HasPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read the capabilities of the process: %w", err)
	}
	var missing []string
	for _, c := range sandboxPrivileges {
		if data[c.number/32].Effective&(1<<(c.number%32)) == 0 {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("the worker is not root: it lacks the Linux capabilities %s", strings.Join(missing, ", "))
	}
	return nil
}

// dropPrivileges switches this process to the user and prevents it from gaining
// privileges. The switch clears the parent-death signal, so it is set again.
func (p *Plan) dropPrivileges() error {
	for c := uintptr(0); ; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			if errors.Is(err, unix.EINVAL) {
				break // no further capabilities
			}
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("switch to the sandbox user: %w", err)
	}
	if err := syscall.Setresgid(p.User, p.User, p.User); err != nil {
		return fmt.Errorf("switch to the sandbox user: %w", err)
	}
	if err := syscall.Setresuid(p.User, p.User, p.User); err != nil {
		return fmt.Errorf("switch to the sandbox user: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&header, &new([2]unix.CapUserData)[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set the parent-death signal: %w", err)
	}
	if os.Getppid() != p.Parent {
		return errors.New("the worker has ended")
	}
	return nil
}
