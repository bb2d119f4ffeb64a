package inside

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// capabilities is a capability set, one bit each.
type capabilities uint64

func capability(numbers ...int) (set capabilities) {
	for _, n := range numbers {
		set |= 1 << n
	}
	return set
}

var (
	// enterPrivileges are the capabilities that a helper needs to become a user in another root.
	enterPrivileges = capability(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SYS_CHROOT)
	// filePrivileges are the capabilities over files that a helper keeps if the process has them.
	filePrivileges = capability(unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID)
)

// permitted returns the capabilities that a process may acquire. The result is empty for a process in a user namespace of its
// own: its capabilities only cover that namespace, and a helper outside cannot have them.
func (p Process) permitted() (capabilities, error) {
	if own, err := p.isOwn("ns/user"); err != nil || !own {
		return 0, err
	}
	text, err := os.ReadFile(p.path("status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return capabilities(set), err
		}
	}
	return 0, fmt.Errorf("%s has no CapBnd", p.path("status"))
}

// canSwitch reports whether this thread may become any user in any root.
func canSwitch() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	have := capabilities(data[0].Effective) | capabilities(data[1].Effective)<<32
	need := enterPrivileges | capability(unix.CAP_SETPCAP)
	return have&need == need
}

// restrict drops every privilege outside keep from this thread and from the program that it forks. switching means that the
// thread is privileged, so there are capabilities to drop.
func restrict(keep capabilities, switching bool) error {
	if switching {
		for c := range 64 {
			if keep&capability(c) != 0 {
				continue
			}
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
				if errors.Is(err, unix.EINVAL) {
					break // no further capabilities
				}
				return fmt.Errorf("drop capabilities: %w", err)
			}
		}
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
		data[0].Inheritable, data[1].Inheritable = 0, 0
		if err := unix.Capset(&header, &data[0]); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// switchUser switches all threads of this process to the user and the root of the plan. If the user is root, the process keeps its
// capabilities over files. The kernel takes all capabilities from any other user on the switch.
func (p *plan) switchUser() error {
	if p.Root {
		if err := unix.Fchdir(rootDir); err != nil {
			return fmt.Errorf("enter the root directory of the attempt: %w", err)
		}
		if err := unix.Chroot("."); err != nil {
			return fmt.Errorf("enter the root directory of the attempt: %w", err)
		}
		if err := unix.Close(rootDir); err != nil {
			return err
		}
	}
	if p.Switch {
		// These functions of package syscall apply to all threads.
		if err := syscall.Setgroups(p.Groups); err != nil {
			return fmt.Errorf("switch to the user of the attempt: %w", err)
		}
		if err := syscall.Setresgid(p.GID, p.GID, p.GID); err != nil {
			return fmt.Errorf("switch to the user of the attempt: %w", err)
		}
		if err := syscall.Setresuid(p.UID, p.UID, p.UID); err != nil {
			return fmt.Errorf("switch to the user of the attempt: %w", err)
		}
		if err := forgetEntering(); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	if p.Dir == "" || unix.Chdir(p.Dir) != nil {
		p.Dir = "/"
		return unix.Chdir("/")
	}
	return nil
}

// forgetEntering drops enterPrivileges from all threads of a helper that remains root. A program linked with the C library cannot
// do that; its helper still executes nothing that could use them.
func forgetEntering() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	keep := uint32(filePrivileges)
	data[0].Effective &= keep
	data[0].Permitted &= keep
	data[1] = unix.CapUserData{}
	return capsetAll(&header, &data)
}
