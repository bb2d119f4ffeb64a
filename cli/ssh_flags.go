package cli

import (
	"cmp"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	"switchyard/cli/stack"
	"switchyard/workers"
)

// sshFlags adds the flags for where a gateway listens for SSH clients and how they reach it.
func sshFlags(f *pflag.FlagSet, door *stack.SSHDoor) {
	f.StringVar(&door.Address, "ssh-address", "", "host:port to listen on for SSH clients, such as 0.0.0.0:7222 (default none)")
	f.StringVar(&door.Host, "ssh-host", "", "name or address to show to users for SSH connections\n(default as their --gateway)")
	f.IntVar(&door.Port, "ssh-port", 0, "port to show to users for SSH connections (default that of\n--ssh-address)")
}

// sshHostName matches a host that SSH clients connect to. It is strict because people copy the command that contains
// it.
var sshHostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?$`)

// checkSSHFlags returns a usage error if the flags for SSH clients are invalid or contradict one another.
func checkSSHFlags(cfg *stack.Config) error {
	door := cfg.SSH
	switch {
	case door.Host != "" && (!sshHostName.MatchString(door.Host) || strings.Contains(door.Host, ":") && net.ParseIP(door.Host) == nil):
		return exit.Usagef("--ssh-host %s: it must be a host name or an address, without a port, such as ssh.example.com", door.Host)
	case door.Port < 0 || door.Port > 65535:
		return exit.Usagef("--ssh-port %d: it must be 1 to 65535", door.Port)
	case door.Address == "" && door.Host != "" && door.Port == 0:
		return exit.Usagef("--ssh-host %s: it needs --ssh-address, or the --ssh-port of another gateway", door.Host)
	case door.Address == "":
		return nil
	}
	if _, _, err := net.SplitHostPort(door.Address); err != nil {
		return exit.Usagef("--ssh-address %s: it must be host:port, such as 0.0.0.0:7222", door.Address)
	}
	if cfg.Role == workers.RoleObserver {
		return exit.Usagef("--ssh-address %s: an observer only reads, and opens no sessions", door.Address)
	}
	return nil
}

// sshHint returns where SSH clients reach the gateway, or "" if it does not listen for them.
func sshHint(s *stack.Stack, door stack.SSHDoor) string {
	address := s.Gateway().SSHAddress()
	if address == "" {
		return ""
	}
	_, port, _ := net.SplitHostPort(address) // a listener's address always has a port
	if door.Port != 0 {
		port = strconv.Itoa(door.Port)
	}
	return fmt.Sprintf("SSH        %s: ssh -p %s TASK.RUN@%s\n", address, port, cmp.Or(door.Host, "HOST"))
}
