//go:build engines

package container

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container/enginetest"
	v1 "switchyard/proto/switchyard/v1"
)

// newNetwork creates a network that offers containers 13 addresses, in a subnet that
// nothing else uses. It removes the network at the end of the test.
func newNetwork(t *testing.T, docker *client.Client) (name, prefix string) {
	t.Helper()
	for range 50 {
		a, b := 64+rand.IntN(64), rand.IntN(256)
		prefix = fmt.Sprintf("100.%d.%d.", a, b) // the range for carrier-grade NAT, RFC 6598
		name = fmt.Sprintf("switchyard-test-%d", rand.Int64())
		made, err := docker.NetworkCreate(t.Context(), name, network.CreateOptions{
			Driver: "bridge",
			IPAM:   &network.IPAM{Config: []network.IPAMConfig{{Subnet: prefix + "0/28", Gateway: prefix + "1"}}},
		})
		if err != nil {
			if strings.Contains(err.Error(), "overlaps") {
				continue
			}
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			if err := docker.NetworkRemove(ctx, made.ID); err != nil {
				t.Error(err)
			}
		})
		return name, prefix
	}
	t.Fatal("no subnet is free")
	return "", ""
}

// hold starts a container at an address and returns the error of the start. It removes
// the container at the end of the test.
func hold(t *testing.T, docker *client.Client, name, ip string) error {
	t.Helper()
	made, err := docker.ContainerCreate(t.Context(),
		&container.Config{Image: enginetest.Image(t), Cmd: []string{"sleep", "600"}}, &container.HostConfig{NetworkMode: container.NetworkMode(name)},
		&network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{name: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: ip}}}}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := docker.ContainerRemove(ctx, made.ID, container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	return docker.ContainerStart(t.Context(), made.ID, container.StartOptions{})
}

func TestReservedAddressesAreDistinctAndReleased(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	e := newFor(t, Options{})
	name, prefix := newNetwork(t, docker)
	if err := hold(t, docker, name, prefix+"2"); err != nil {
		t.Fatal(err)
	}
	for want, fault := range map[string]bool{prefix + "2": false, prefix + "1": false, "10.255.255.9": true} {
		if ip, _, err := e.addresses.reserveAddress(t.Context(), name, want); err == nil || fault != (executor.AsStartError(err) != nil) {
			t.Errorf("%s: %s, %v", want, ip, err)
		}
	}
	if ip, release, err := e.addresses.reserveAddress(t.Context(), name, ""); err != nil || ip != "" {
		t.Errorf("whichever: %q, %v", ip, err)
	} else {
		release()
	}
	fixed, release, err := e.addresses.reserveAddress(t.Context(), name, prefix+"9")
	if err != nil || fixed != prefix+"9" {
		t.Fatalf("%s, %v", fixed, err)
	}
	if _, _, err := e.addresses.reserveAddress(t.Context(), name, fixed); err == nil {
		t.Error("it was reserved twice")
	}
	release()
	release()
	// 13 addresses. The running container holds one of them.
	var mu sync.Mutex
	var all sync.WaitGroup
	given := map[string]int{}
	for range 12 {
		all.Go(func() {
			ip, _, err := e.addresses.reserveAddress(t.Context(), name, autoAddress)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			given[ip]++
		})
	}
	all.Wait()
	if len(given) != 12 || given[prefix+"2"] > 0 {
		t.Errorf("given are %v", given)
	}
	if ip, _, err := e.addresses.reserveAddress(t.Context(), name, autoAddress); err == nil {
		t.Errorf("none is free, and %s was given", ip)
	}
}

func TestReservedAddressWorks(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	e := newFor(t, Options{})
	name, _ := newNetwork(t, docker)
	ip, release, err := e.addresses.reserveAddress(t.Context(), name, autoAddress)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := hold(t, docker, name, ip); err != nil {
		t.Fatal(err)
	}
	if err := hold(t, docker, name, ip); !isAddressTaken(err) {
		t.Errorf("the engine says %v", err)
	}
	release()
	again, release, err := e.addresses.reserveAddress(t.Context(), name, autoAddress)
	if err != nil || again == ip {
		t.Errorf("%s, %v; %s is in use", again, err, ip)
	}
	release()
}

func TestFixedAddressNeedsAUserDefinedNetwork(t *testing.T) {
	t.Parallel()
	enginetest.Engine(t)
	e := newFor(t, Options{Policy: &v1.ContainerPolicy{HostNetwork: true}})
	for _, name := range []string{"", "none", "host", "bridge", "default"} {
		for _, want := range []string{autoAddress, "10.0.0.9"} {
			if _, _, err := e.addresses.reserveAddress(t.Context(), name, want); executor.AsStartError(err) == nil {
				t.Errorf("%q with %s: %v", name, want, err)
			}
		}
		if ip, _, err := e.addresses.reserveAddress(t.Context(), name, ""); err != nil || ip != "" {
			t.Errorf("%q: %q, %v", name, ip, err)
		}
	}
	_, _, err := e.addresses.reserveAddress(t.Context(), "switchyard-test-none", "")
	if err == nil || executor.AsStartError(err) != nil || !strings.Contains(err.Error(), "network switchyard-test-none does not exist on ") {
		t.Error(err)
	}
}

// TestHostNetworkIsRefusedByItsIDToo checks that naming the host network by its id does not
// circumvent the policy.
func TestHostNetworkIsRefusedByItsIDToo(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	host, err := docker.NetworkInspect(t.Context(), "host", network.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := newFor(t, Options{})
	for _, name := range []string{host.ID, host.ID[:12]} {
		_, _, err := e.addresses.reserveAddress(t.Context(), name, "")
		if executor.AsStartError(err) == nil || !strings.Contains(err.Error(), "--allow-host-network") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A host network that the operator allows still has no addresses to choose from.
	allowing := newFor(t, Options{Policy: &v1.ContainerPolicy{HostNetwork: true}})
	if _, _, err := allowing.addresses.reserveAddress(t.Context(), host.ID, ""); err != nil {
		t.Error(err)
	}
	if _, _, err := allowing.addresses.reserveAddress(t.Context(), host.ID, autoAddress); executor.AsStartError(err) == nil {
		t.Error(errors.New("an address of the host's network was given"))
	}
}
