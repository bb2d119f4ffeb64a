package hostlist

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// List is a list of hosts: names such as "docs.example.com", patterns such as "*.example.com", which matches all
// hosts below that name, "*" for all hosts, and IP addresses. Case does not matter.
type List []string

// Check returns an error if a text is not valid in a List.
func Check(pattern string) error {
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

// Allows reports whether the list matches a host.
func (l List) Allows(host string) bool {
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
func (l List) names(host string) bool {
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
