package sandboxinit

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// network gives the sandbox a network of its own, unless it has the node's. The network has only a
// loopback interface, so the program can reach neither other machines nor what listens on the node,
// nor the node's abstract Unix sockets.
func (p *Plan) network() error {
	if p.NodeNetwork {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("create a network namespace: %w", err)
	}
	if err := startLoopback(); err != nil {
		return fmt.Errorf("start the loopback interface: %w", err)
	}
	return nil
}

// startLoopback brings up the loopback interface. The kernel assigns its addresses.
func startLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
