//go:build engines

package container

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
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
