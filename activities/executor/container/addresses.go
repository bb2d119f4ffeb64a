package container

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// autoAddress in a spec requests any free address.
const autoAddress = "auto"

// reserveAddress reserves the address that a container gets in a network. want comes from the spec:
// an address, "auto", or "" for whichever address the engine assigns. No two reservations of this
// process hold the same address at a time. The caller calls release once the container is gone;
// further calls are no-ops.
//
// A missing network and a taken address are faults of the node. A network without addresses to
// choose from and an address outside the network are faults of the task, reported as a *StartError.
// Another container may take the address before this one starts. isAddressTaken then recognises the
// engine's error, and a new reservation of "auto" yields another address.
func (a *addresses) reserveAddress(ctx context.Context, name, want string) (ip string, release func(), err error) {
	none := func() {}
	if !isUserDefined(name) {
		if want != "" {
			shown := name
			if shown == "" {
				shown = "the engine's own"
			}
			return "", none, badNetwork("spec.ip is %s, but network %s does not support fixed addresses; use a network created with `docker network create --subnet`", want, shown)
		}
		return "", none, nil
	}
	found, err := a.inspectNetwork(ctx, name)
	switch {
	case cerrdefs.IsNotFound(err):
		return "", none, fmt.Errorf("network %s does not exist on %s", name, hostname())
	case err != nil:
		return "", none, fmt.Errorf("inspect network %s: %w", name, err)
	case found.Driver == "host" && !a.policy.GetHostNetwork():
		return "", none, refusal(fmt.Sprintf("network %s is the host network, which this node does not allow (%s)", name, policy.Remedy(a.policy, policy.HostNetworkFlag)))
	case want == "":
		return "", none, nil
	case !isUserDefined(found.Name) || found.Driver == "host" || found.Driver == "null":
		return "", none, badNetwork("spec.ip is %s, but network %s does not support fixed addresses", want, name)
	}
	pool, err := poolOf(found)
	if err != nil {
		return "", none, fmt.Errorf("network %s: %w", name, err)
	}
	at, err := a.reserve(found.ID, pool, want)
	if err != nil {
		if s := executor.AsStartError(err); s != nil {
			return "", none, badNetwork("network %s: %w", name, s.Err)
		}
		return "", none, fmt.Errorf("network %s: %w", name, err)
	}
	var once sync.Once
	return at.String(), func() { once.Do(func() { a.release(found.ID, at) }) }, nil
}

func badNetwork(format string, args ...any) error {
	return errCannotRun(fmt.Errorf(format, args...))
}

// isUserDefined reports whether a spec's network is user-defined.
func isUserDefined(name string) bool {
	switch name {
	case "", network.NetworkDefault, network.NetworkBridge, network.NetworkNone, network.NetworkHost:
		return false
	}
	return true
}

// isAddressTaken reports whether the engine could not start a container because another container
// has its address.
func isAddressTaken(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "address already in use")
}

func (a *addresses) inspectNetwork(ctx context.Context, name string) (network.Inspect, error) {
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	found, err := a.docker.NetworkInspect(ctx, name, network.InspectOptions{})
	return found, causeOfTimeout(ctx, err)
}

// addresses holds the addresses that this process has reserved in the engine's networks. mu protects the fields below it.
type addresses struct {
	docker *client.Client
	policy *v1.ContainerPolicy

	mu       sync.Mutex
	reserved map[string]map[netip.Addr]bool // by network id
	last     map[string]netip.Addr          // last address assigned for "auto", by network id
}

// reserve marks an address of a pool as taken and returns it: the address want, or a free one if
// want is "auto".
func (a *addresses) reserve(id string, p *pool, want string) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reserved == nil {
		a.reserved, a.last = map[string]map[netip.Addr]bool{}, map[string]netip.Addr{}
	}
	taken := func(at netip.Addr) bool { return p.used[at] || a.reserved[id][at] }
	var at netip.Addr
	if want == autoAddress {
		var ok bool
		if at, ok = p.findFree(a.last[id], taken, len(p.used)+len(a.reserved[id])); !ok {
			return netip.Addr{}, fmt.Errorf("it has no free address on %s", hostname())
		}
		a.last[id] = at
	} else {
		var err error
		if at, err = netip.ParseAddr(want); err != nil {
			return netip.Addr{}, badNetwork("spec.ip %q is not an IP address", want)
		}
		switch {
		case !p.hasUsable(at):
			return netip.Addr{}, badNetwork("spec.ip %s is outside of its subnets, %s", want, p)
		case taken(at):
			return netip.Addr{}, fmt.Errorf("address %s is in use on %s", want, hostname())
		}
	}
	if a.reserved[id] == nil {
		a.reserved[id] = map[netip.Addr]bool{}
	}
	a.reserved[id][at] = true
	return at, nil
}

func (a *addresses) release(id string, at netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.reserved[id], at)
	if len(a.reserved[id]) == 0 {
		delete(a.reserved, id)
	}
}
