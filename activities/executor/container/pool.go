package container

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/docker/docker/api/types/network"
)

// pool are the addresses of a network.
type pool struct {
	subnets []netip.Prefix
	ranges  []netip.Prefix // of those, what the engine gives addresses out of, one for each subnet
	used    map[netip.Addr]bool
}

// poolOf are the addresses of a network, with those that are in use: by its containers
// that run, as gateway, or set aside.
func poolOf(n network.Inspect) (*pool, error) {
	p := &pool{used: map[netip.Addr]bool{}}
	for _, c := range n.IPAM.Config {
		subnet, err := netip.ParsePrefix(c.Subnet)
		if err != nil {
			continue // of a driver with addresses of its own kind
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
		} else { // the engine has taken the first one
			p.used[first(subnet)], p.used[first(from)] = true, true
		}
		for _, aside := range c.AuxAddress {
			if at, err := netip.ParseAddr(aside); err == nil {
				p.used[at] = true
			}
		}
	}
	if len(p.subnets) == 0 {
		return nil, errors.New("it has no subnet to choose an address from")
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

// first is the first address of a range that is not the one of its subnet as a whole.
func first(p netip.Prefix) netip.Addr { return p.Addr().Next() }

// has reports whether a container can have an address, be it free or not.
func (p *pool) has(at netip.Addr) bool {
	for _, subnet := range p.subnets {
		if usable(subnet, at) {
			return true
		}
	}
	return false
}

// usable reports whether an address in a subnet is neither its first nor, of IPv4, its
// last, which stand for all of it.
func usable(subnet netip.Prefix, at netip.Addr) bool {
	if !subnet.Contains(at) {
		return false
	}
	if subnet.Addr().BitLen()-subnet.Bits() < 2 {
		return true
	}
	return at != subnet.Addr() && (at.Is6() || subnet.Contains(at.Next()))
}

// free finds a free address, the next one after another if that is in the pool: one
// that another container took unseen is not tried again at once. IPv4 goes first. most is how
// many addresses may be taken.
func (p *pool) free(after netip.Addr, taken func(netip.Addr) bool, most int) (netip.Addr, bool) {
	for _, v6 := range []bool{false, true} {
		for i, from := range p.ranges {
			if from.Addr().Is6() != v6 {
				continue
			}
			at := from.Addr()
			if from.Contains(after) && from.Contains(after.Next()) {
				at = after.Next()
			}
			// Two of a range cannot be used at all.
			for range most + 3 {
				if usable(p.subnets[i], at) && !taken(at) {
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

// String names the subnets.
func (p *pool) String() string {
	var names []string
	for _, subnet := range p.subnets {
		names = append(names, subnet.String())
	}
	return strings.Join(names, ", ")
}
