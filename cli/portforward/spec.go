package portforward

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Spec maps a port of this machine to a port of a task.
type Spec struct {
	// Address is the local address to listen on.
	Address string
	// Local is the port to listen on; 0 means any free port.
	Local int
	// Remote is the port of the task.
	Remote int
}

// loopback is the address of a Spec that names none. Only programs on this machine can reach it.
const loopback = "127.0.0.1"

// ParseSpec parses PORT, LOCAL:REMOTE or ADDRESS:LOCAL:REMOTE, with an IPv6 address in brackets.
func ParseSpec(text string) (Spec, error) {
	head, last, two := cutLast(text)
	if !two {
		port, err := parsePort(text, 1)
		return Spec{loopback, port, port}, err
	}
	remote, err := parsePort(last, 1)
	if err != nil {
		return Spec{}, err
	}
	address, middle, three := cutLast(head)
	if !three {
		address, middle = loopback, head
	}
	local, err := parsePort(middle, 0)
	if err != nil {
		return Spec{}, err
	}
	if inner, ok := strings.CutPrefix(address, "["); ok {
		address = strings.TrimSuffix(inner, "]")
	}
	if ip, err := netip.ParseAddr(address); address != "localhost" && err != nil {
		return Spec{}, fmt.Errorf("%q is not a numeric address, such as 0.0.0.0 or [::]", address)
	} else if err == nil {
		address = ip.String()
	}
	return Spec{address, local, remote}, nil
}

// IsSpec reports whether a text is meant as a Spec, valid or not: it has only digits, or a colon.
func IsSpec(text string) bool {
	return strings.Contains(text, ":") || text != "" && strings.Trim(text, "0123456789") == ""
}

func cutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

func parsePort(text string, least int) (int, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || int(port) < least {
		return 0, fmt.Errorf("%q is not a port; use a number from %d to 65535", text, least)
	}
	return int(port), nil
}

// ListenAddress returns the local address as host:port.
func (s Spec) ListenAddress() string { return net.JoinHostPort(s.Address, strconv.Itoa(s.Local)) }
