package cli

import (
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	"switchyard/cli/stack"
	"switchyard/workers"
)

// sshAddressFlag adds the address where a gateway listens for SSH clients.
func sshAddressFlag(f *pflag.FlagSet, address *string) {
	f.StringVar(address, "ssh-address", "", "host:port to listen on for SSH clients, such as 0.0.0.0:7222 (default none)")
}

// checkSSHAddress checks the flag.
func checkSSHAddress(cfg *stack.Config) error {
	if cfg.SSHAddress == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(cfg.SSHAddress); err != nil {
		return exit.Usagef("--ssh-address %s: it must be host:port, such as 0.0.0.0:7222", cfg.SSHAddress)
	}
	if cfg.Role == workers.RoleObserver {
		return exit.Usagef("--ssh-address %s: an observer only reads, and opens no sessions", cfg.SSHAddress)
	}
	return nil
}

// sshHint says where SSH clients reach the gateway, or is "" if they do not.
func sshHint(s *stack.Stack) string {
	address := s.Gateway().SSHAddress()
	if address == "" {
		return ""
	}
	_, port, _ := net.SplitHostPort(address) // which the address of a listener has
	return fmt.Sprintf("SSH        %s: ssh -p %s TASK.RUN@HOST\n", address, port)
}
