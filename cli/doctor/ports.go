package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	netstat "github.com/shirou/gopsutil/v3/net"
	"github.com/shirou/gopsutil/v3/process"
)

// checkPorts checks that the role can listen at its addresses.
func (e *examination) checkPorts(ctx context.Context) []Finding {
	var found []Finding
	for _, port := range e.Ports {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", port.Address)
		holder := ""
		if err == nil {
			err = listener.Close()
		} else if errors.Is(err, syscall.EADDRINUSE) {
			holder = holderOf(ctx, port.Address)
		}
		found = append(found, judgePort(port, err, holder))
	}
	return found
}

// holderOf describes the process that listens at an address, or returns "" if this user cannot see it.
func holderOf(ctx context.Context, address string) string {
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	all, err := netstat.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		return ""
	}
	for _, c := range all {
		if c.Status != "LISTEN" || int(c.Laddr.Port) != port || c.Pid == 0 {
			continue
		}
		name := "a process"
		if p, err := process.NewProcessWithContext(ctx, c.Pid); err == nil {
			if exe, err := p.ExeWithContext(ctx); err == nil {
				name = strings.TrimSuffix(filepath.Base(exe), " (deleted)")
			} else if short, err := p.NameWithContext(ctx); err == nil {
				name = short
			}
		}
		return name + " (process " + strconv.Itoa(int(c.Pid)) + ")"
	}
	return ""
}

// ownName begins the description of a process of this program.
const ownName = "switchyard "

func judgePort(port Port, err error, holder string) Finding {
	address := port.Flag + " " + port.Address
	switch {
	case err == nil:
		return ok("%s is free", address)
	case strings.HasPrefix(holder, ownName):
		return ok("%s is held by %s", address, holder)
	case errors.Is(err, syscall.EADDRINUSE):
		by := holder
		if by == "" {
			by = "a process of another user"
		}
		remedy := "stop it, or choose another address with " + port.Flag
		if holder == "" {
			remedy = "`ss -ltnp`, as root, shows which one; stop it, or choose another address with " + port.Flag
		}
		if port.Optional {
			return warning(remedy, "%s is held by %s, so nothing is served there", address, by)
		}
		return failed(remedy, "%s is held by %s", address, by)
	case errors.Is(err, fs.ErrPermission):
		return failed("choose a port above 1023 with "+port.Flag+", or give the unit AmbientCapabilities=CAP_NET_BIND_SERVICE", "%s: this user must not listen there", address)
	}
	return failed("choose an address of this machine with "+port.Flag, "%s: %v", address, err)
}
