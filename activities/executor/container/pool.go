package container

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/docker/docker/api/types/network"
)

// pool holds the addresses of a network.
type pool struct {
	subnets []netip.Prefix
	ranges  []netip.Prefix // one for each subnet: the part from which the engine assigns addresses
	used    map[netip.Addr]bool
}

// poolOf returns the pool of a network. Used addresses are those of running containers, gateways
// and auxiliary addresses.
func poolOf(n network.Inspect) (*pool, error) {
	p := &pool{used: map[netip.Addr]bool{}}
	for _, c := range n.IPAM.Config {
		subnet, err := netip.ParsePrefix(c.Subnet)
		if err != nil {
			continue // the driver uses addresses of another kind
		}
		subnet = subnet.Masked()
		from, err := netip.ParsePrefix(c.IPRange)
		if err != nil {
			from = subnet
		}
		from = from.Masked()
		p.subnets, p.ranges = append(p.subnets, subnet), append(p.ranges, from)
		if gateway, err := netip.ParseAddr(c.Gateway); err == nil {
			p.used[gateway] = true
		} else { // the engine has taken the first address
			p.used[first(subnet)], p.used[first(from)] = true, true
		}
		for _, aside := range c.AuxAddress {
			if at, err := netip.ParseAddr(aside); err == nil {
				p.used[at] = true
			}
		}
	}
	if len(p.subnets) == 0 {
		return nil, errors.New("it has no subnet, so spec.ip cannot be set")
	}
	for _, c := range n.Containers {
		for _, address := range []string{c.IPv4Address, c.IPv6Address} {
			if at, err := netip.ParsePrefix(address); err == nil {
				p.used[at.Addr()] = true
			}
		}
	}
	return p, nil
}

// first returns the first address of a range after the network address.
func first(p netip.Prefix) netip.Addr { return p.Addr().Next() }

// hasUsable reports whether a container can have an address, whether it is free or not.
func (p *pool) hasUsable(at netip.Addr) bool {
	for _, subnet := range p.subnets {
		if isUsable(subnet, at) {
			return true
		}
	}
	return false
}

// isUsable reports whether a container can have an address in a subnet. The first address, and for
// IPv4 the last one, stand for the whole subnet.
func isUsable(subnet netip.Prefix, at netip.Addr) bool {
	if !subnet.Contains(at) {
		return false
	}
	if subnet.Addr().BitLen()-subnet.Bits() < 2 {
		return true
	}
	return at != subnet.Addr() && (at.Is6() || subnet.Contains(at.Next()))
}

// findFree returns a free address, starting at the successor of after if the pool contains it, so that
// an address which another container took unnoticed is not tried again at once. IPv4 comes first.
// most bounds how many addresses can be taken.
func (p *pool) findFree(after netip.Addr, taken func(netip.Addr) bool, most int) (netip.Addr, bool) {
	for _, v6 := range []bool{false, true} {
		for i, from := range p.ranges {
			if from.Addr().Is6() != v6 {
				continue
			}
			at := from.Addr()
			if from.Contains(after) && from.Contains(after.Next()) {
				at = after.Next()
			}
			// A range has at most two addresses that no container can have.
			for range most + 3 {
				if isUsable(p.subnets[i], at) && !taken(at) {
					return at, true
				}
				if at = at.Next(); !from.Contains(at) {
					at = from.Addr()
				}
			}
		}
	}
	return netip.Addr{}, false
}

// String lists the subnets.
func (p *pool) String() string {
	var names []string
	for _, subnet := range p.subnets {
		names = append(names, subnet.String())
	}
	return strings.Join(names, ", ")
}
