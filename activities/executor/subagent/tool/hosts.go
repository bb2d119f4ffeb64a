package tool

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// HostList is a list of hosts: names such as "docs.example.com", patterns such as "*.example.com", which matches all
// hosts below that name, "*" for all hosts, and IP addresses. Case does not matter.
type HostList []string

// CheckHost returns an error if a text is not valid in a HostList.
func CheckHost(pattern string) error {
	if pattern == "*" {
		return nil
	}
	if _, err := netip.ParseAddr(pattern); err == nil {
		return nil
	}
	name := strings.TrimPrefix(pattern, "*.")
	valid := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	if name == "" || strings.Trim(name, ".") != name || strings.ContainsFunc(name, func(r rune) bool { return !valid(r) }) {
		return fmt.Errorf("%q is not a valid host; use a name, pattern or address such as docs.example.com, *.example.com or 192.0.2.1, without scheme, port or path", pattern)
	}
	return nil
}

// allows reports whether the list matches a host.
func (l HostList) allows(host string) bool {
	host = normalHost(host)
	return slices.ContainsFunc(l, func(pattern string) bool {
		if pattern == "*" {
			return true
		}
		if below, ok := strings.CutPrefix(pattern, "*."); ok {
			return strings.HasSuffix(host, "."+normalHost(below)) && !isAddress(host)
		}
		return normalHost(pattern) == host
	})
}

// names reports whether the list contains a host without a wildcard.
func (l HostList) names(host string) bool {
	return slices.ContainsFunc(l, func(pattern string) bool {
		return !strings.Contains(pattern, "*") && normalHost(pattern) == normalHost(host)
	})
}

// normalHost returns the normalized form of a host for comparisons.
func normalHost(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
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
