package hostlist

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// dialTimeout bounds the time for a connection.
const dialTimeout = 10 * time.Second

// ErrInner is wrapped by the errors of dialers for addresses that are not on the public internet.
var ErrInner = errors.New("not allowed")

// Dialer returns a dialer for a host. The dialer checks the address after the name is resolved, and refuses one that is not on the
// public internet, unless the list contains the host without a wildcard. remedy ends the error about it.
func (l List) Dialer(host, remedy string) *net.Dialer {
	d := &net.Dialer{Timeout: dialTimeout}
	if l.names(host) {
		return d
	}
	d.Control = func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || isInner(at.Addr()) {
			return fmt.Errorf("%w: %s resolves to %s, which is not a public internet address; %s", ErrInner, host, at.Addr(), remedy)
		}
		return nil
	}
	return d
}

// innerNetworks are networks that lead to this machine, its neighbours, its cloud, or nowhere, in addition to those
// that netip recognizes. Source: the special-purpose address registries of IANA (RFC 6890), and the ranges they give
// for address translation.
var innerNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared by carriers; Alibaba's metadata is 100.100.100.200
	netip.MustParsePrefix("192.0.0.0/24"),  // Oracle's metadata is 192.0.0.192
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's metadata
	netip.MustParsePrefix("::/96"),            // contains IPv4 addresses
	netip.MustParsePrefix("64:ff9b::/96"),     // NAT64
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), // Teredo among others
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("fec0::/10"),
}

// isInner reports whether an address is not on the public internet.
func isInner(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return !addr.IsValid() || addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() ||
		slices.ContainsFunc(innerNetworks, func(p netip.Prefix) bool { return p.Contains(addr) })
}
