package container

import (
	"net/netip"
	"testing"

	"github.com/docker/docker/api/types/network"
	"pgregory.net/rapid"

	"switchyard/activities/executor"
)

// aNetwork returns a network with some subnets.
func aNetwork(configs ...network.IPAMConfig) network.Inspect {
	return network.Inspect{Name: "n", ID: "id", Driver: "bridge", IPAM: network.IPAM{Config: configs}, Containers: map[string]network.EndpointResource{}}
}

func TestFixedAddressIsChecked(t *testing.T) {
	n := aNetwork(network.IPAMConfig{Subnet: "10.5.0.0/29", Gateway: "10.5.0.1", AuxAddress: map[string]string{"printer": "10.5.0.3"}})
	n.Containers["c"] = network.EndpointResource{IPv4Address: "10.5.0.2/29"}
	tests := map[string]struct {
		want  string
		got   string // "" if an error is expected
		fault bool   // of the task
	}{
		"free":         {want: "10.5.0.5", got: "10.5.0.5"},
		"auto":         {want: "auto", got: "10.5.0.4"},
		"gateway":      {want: "10.5.0.1"},
		"set aside":    {want: "10.5.0.3"},
		"in use":       {want: "10.5.0.2"},
		"the subnet":   {want: "10.5.0.0", fault: true},
		"broadcast":    {want: "10.5.0.7", fault: true},
		"elsewhere":    {want: "10.6.0.5", fault: true},
		"no address":   {want: "ten", fault: true},
		"another kind": {want: "fd00::5", fault: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := poolOf(n)
			if err != nil {
				t.Fatal(err)
			}
			var a addresses
			at, err := a.reserve("id", p, tt.want)
			if tt.got == "" {
				if err == nil || tt.fault != (executor.AsStartError(err) != nil) {
					t.Errorf("%s: %v", at, err)
				}
			} else if err != nil || at.String() != tt.got {
				t.Errorf("%s, %v; want %s", at, err, tt.got)
			}
		})
	}
}

func TestAutomaticAddressesFollowTheRange(t *testing.T) {
	tests := map[string]struct {
		config network.IPAMConfig
		want   []string
	}{
		"no gateway told":  {network.IPAMConfig{Subnet: "10.5.0.0/29"}, []string{"10.5.0.2", "10.5.0.3", "10.5.0.4", "10.5.0.5", "10.5.0.6"}},
		"range":            {network.IPAMConfig{Subnet: "10.5.0.0/24", Gateway: "10.5.0.1", IPRange: "10.5.0.128/30"}, []string{"10.5.0.128", "10.5.0.129", "10.5.0.130", "10.5.0.131"}},
		"range at the end": {network.IPAMConfig{Subnet: "10.5.0.0/24", Gateway: "10.5.0.1", IPRange: "10.5.0.252/30"}, []string{"10.5.0.252", "10.5.0.253", "10.5.0.254"}},
		"IPv6":             {network.IPAMConfig{Subnet: "fd00::/126", Gateway: "fd00::1"}, []string{"fd00::2", "fd00::3"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := poolOf(aNetwork(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			var a addresses
			for _, want := range tt.want {
				if at, err := a.reserve("id", p, autoAddress); err != nil || at.String() != want {
					t.Fatalf("%s, %v; want %s", at, err, want)
				}
			}
			if at, err := a.reserve("id", p, autoAddress); err == nil || executor.AsStartError(err) != nil {
				t.Errorf("none is left: %s, %v", at, err)
			}
			freed := netip.MustParseAddr(tt.want[0])
			a.release("id", freed)
			if at, err := a.reserve("id", p, autoAddress); err != nil || at != freed {
				t.Errorf("%s, %v; %s is free again", at, err, freed)
			}
			if len(a.reserved) == 0 {
				t.Error("nothing is reserved")
			}
		})
	}
}

// TestAddressesAreReservedOnce checks that no address is held twice, that one is found
// while any is free, and that the next address differs from the last one.
func TestAddressesAreReservedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := poolOf(aNetwork(network.IPAMConfig{Subnet: "10.0.0.0/28", Gateway: "10.0.0.1"}))
		if err != nil {
			t.Fatal(err)
		}
		const usable = 13
		for range rapid.IntRange(0, usable).Draw(t, "foreign") {
			var a addresses
			at, err := a.reserve("id", p, autoAddress)
			if err != nil {
				t.Fatal(err)
			}
			p.used[at] = true
		}
		foreign := len(p.used) - 1
		var a addresses
		held := map[netip.Addr]bool{}
		var last netip.Addr
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "release") {
				for at := range held {
					a.release("id", at)
					delete(held, at)
					break
				}
				continue
			}
			at, err := a.reserve("id", p, autoAddress)
			full := foreign+len(held) == usable
			switch {
			case full != (err != nil):
				t.Fatalf("%v with %d foreign and %d held", err, foreign, len(held))
			case err != nil:
				continue
			case held[at] || p.used[at] || !p.hasUsable(at):
				t.Fatalf("%s is not free", at)
			case at == last && foreign+len(held) < usable-1:
				t.Fatalf("%s is given again at once", at)
			}
			held[at], last = true, at
		}
	})
}
