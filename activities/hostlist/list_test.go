package hostlist

import (
	"net/netip"
	"testing"
)

func TestListsMatch(t *testing.T) {
	for _, c := range []struct {
		list           List
		host           string
		allowed, named bool
	}{
		{List{"docs.example.com"}, "docs.example.com", true, true},
		{List{"docs.example.com"}, "DOCS.example.com.", true, true},
		{List{"docs.example.com"}, "example.com", false, false},
		{List{"docs.example.com"}, "xdocs.example.com", false, false},
		{List{"*.example.com"}, "a.b.example.com", true, false},
		{List{"*.Example.com"}, "a.example.com", true, false},
		{List{"*.example.com"}, "example.com", false, false},
		{List{"*.example.com"}, "evilexample.com", false, false},
		{List{"*.example.com"}, "example.com.evil.org", false, false},
		{List{"*"}, "anything", true, false},
		{List{"*", "127.0.0.1"}, "127.0.0.1", true, true},
		{List{"127.0.0.1"}, "::ffff:127.0.0.1", true, true},
		{List{"::1"}, "0:0:0:0:0:0:0:1", true, true},
		{List{"*.0.0.1"}, "127.0.0.1", false, false},
		{nil, "x", false, false},
	} {
		if a, n := c.list.Allows(c.host), c.list.names(c.host); a != c.allowed || n != c.named {
			t.Errorf("%v of %s: %v and %v", c.list, c.host, a, n)
		}
	}
	for pattern, valid := range map[string]bool{
		"a.b": true, "*.a.b": true, "*": true, "10.0.0.1": true, "::1": true, "localhost": true,
		"": false, "*.": false, "http://a": false, "a:80": false, "a/b": false, "*a.b": false, "a.*": false, ".a": false, "a b": false,
	} {
		if err := Check(pattern); (err == nil) != valid {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

func TestInnerAddressesAreKnown(t *testing.T) {
	for address, inner := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "10.1.2.3": true, "172.16.0.1": true, "192.168.1.1": true, "169.254.169.254": true, "0.0.0.0": true,
		"100.100.100.200": true, "192.0.0.192": true, "168.63.129.16": true, "255.255.255.255": true, "224.0.0.1": true, "::1": true, "::": true, "fe80::1": true,
		"fd00:ec2::254": true, "::ffff:127.0.0.1": true, "::127.0.0.1": true, "64:ff9b::7f00:1": true, "2002:7f00:1::": true, "fec0::1": true, "ff02::1": true,
		"1.1.1.1": false, "8.8.8.8": false, "2606:4700::1111": false, "172.32.0.1": false,
	} {
		if isInner(netip.MustParseAddr(address)) != inner {
			t.Errorf("%s: %v", address, !inner)
		}
	}
}
