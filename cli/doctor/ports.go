package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	netstat "github.com/shirou/gopsutil/v3/net"
	"github.com/shirou/gopsutil/v3/process"

	"switchyard/activities/filelock"
	"switchyard/activities/store"
	"switchyard/workers"
)

// holder is a process that listens at an address.
type holder struct {
	pid int32
	// program is the name of its executable file, or "" if it is unknown. args is its command line.
	program string
	args    []string
}

func (h holder) String() string {
	name := h.program
	switch {
	case name == "":
		name = "a process"
	case h.program == ownProgram && h.command() != "":
		name += " " + h.command()
	}
	return fmt.Sprintf("%s (process %d)", name, h.pid)
}

// ownProgram is the name of this program.
const ownProgram = "switchyard"

// servers lists the commands that listen at addresses.
var servers = []string{RoleGateway, RoleWorker, "dev", "run"}

// command returns the command of a process of this program, or "" if it is unknown.
func (h holder) command() string {
	for _, arg := range h.args[min(1, len(h.args)):] {
		if slices.Contains(servers, arg) {
			return arg
		}
	}
	return ""
}

// checkPorts checks that the role can listen at its addresses.
func (e *examination) checkPorts(ctx context.Context) []Finding {
	var found []Finding
	for _, port := range e.Ports {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", port.Address)
		var held *holder
		if err == nil {
			err = listener.Close()
		} else if errors.Is(err, syscall.EADDRINUSE) {
			held = holderOf(ctx, port.Address)
		}
		found = append(found, judgePort(e.Role, port, err, held, held != nil && e.isOwn(ctx, held.pid)))
	}
	return found
}

// isOwn reports whether a process of this machine is known to have the role: it leads the fleet, or has locked the spool of the
// node.
func (e *examination) isOwn(ctx context.Context, pid int32) bool {
	if e.Role == RoleWorker {
		return int(pid) == filelock.Holder(filepath.Join(e.Spool, store.SpoolLock))
	}
	leader, _, err := e.leader(ctx)
	return err == nil && leader.GetIdentity() == workers.ProcessIdentity(int(pid))
}

// holderOf returns the process that listens at an address, or nil if this user cannot see it.
func holderOf(ctx context.Context, address string) *holder {
	wanted, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil
	}
	all, err := netstat.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		return nil
	}
	for _, c := range all {
		if c.Status != "LISTEN" || c.Pid == 0 || int(c.Laddr.Port) != wanted.Port || !overlap(wanted.IP, net.ParseIP(c.Laddr.IP)) {
			continue
		}
		h := &holder{pid: c.Pid}
		if p, err := process.NewProcessWithContext(ctx, c.Pid); err == nil {
			if exe, err := p.ExeWithContext(ctx); err == nil {
				h.program = strings.TrimSuffix(filepath.Base(exe), " (deleted)")
			} else if short, err := p.NameWithContext(ctx); err == nil {
				h.program = short
			}
			h.args, _ = p.CmdlineSliceWithContext(ctx) // without it, the command is unknown
		}
		return h
	}
	return nil
}

// overlap reports whether one process cannot listen at a port of an address while another one listens there at the other address.
// A listener at no particular address holds the port at all of them, at :: those of IPv4, too.
func overlap(a, b net.IP) bool {
	isAny := func(ip net.IP) bool { return ip == nil || ip.Equal(net.IPv6zero) }
	isAnyOf4 := func(ip net.IP) bool { return ip.Equal(net.IPv4zero) }
	return a.Equal(b) || isAny(a) || isAny(b) || isAnyOf4(a) && b.To4() != nil || isAnyOf4(b) && a.To4() != nil
}

// judgePort judges an attempt to listen at a port. isOwn is set if the holder of the port is known to have the role.
func judgePort(role string, port Port, err error, held *holder, isOwn bool) Finding {
	address := port.Flag + " " + port.Address
	switch {
	case err == nil:
		return ok("%s is free", address)
	case errors.Is(err, syscall.EADDRINUSE):
		return judgeHolder(role, port, address, held, isOwn)
	case errors.Is(err, fs.ErrPermission):
		return failed("choose a port above 1023 with "+port.Flag+", or give the unit AmbientCapabilities=CAP_NET_BIND_SERVICE", "%s: this user must not listen there", address)
	}
	return failed("choose an address of this machine with "+port.Flag, "%s: %v", address, err)
}

func judgeHolder(role string, port Port, address string, held *holder, isOwn bool) Finding {
	other := "choose another address with " + port.Flag
	by, remedy := "a process of another user", "`ss -ltnp`, as root, shows which one; stop it, or "+other
	if held != nil {
		by, remedy = held.String(), "stop it, or "+other
	}
	switch {
	case isOwn:
		return ok("%s is held by this %s, %s", address, role, by)
	case held != nil && held.program == ownProgram && (held.command() == "" || held.command() == role):
		return warning("if it is another one, "+remedy, "%s is held by %s: fine if that is this %s", address, by, role)
	case port.Optional:
		return warning(remedy, "%s is held by %s, so nothing is served there", address, by)
	}
	return failed(remedy, "%s is held by %s", address, by)
}
