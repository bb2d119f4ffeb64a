package policy

import (
	"path"
	"slices"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// HostNetwork is the name of the host's network in a spec.
const HostNetwork = "host"

// IsNamedNetwork reports whether the network of a container is one that someone has created, which only some nodes have. Every
// engine has the others.
func IsNamedNetwork(network string) bool {
	switch network {
	case "", HostNetwork, "none", "bridge", "default":
		return false
	}
	return !strings.Contains(network, ":")
}

// AllCapabilities stands for every Linux capability.
const AllCapabilities = "ALL"

// Spec is the part of a spec, of a container or of a machine made of one, that states what a node must allow.
type Spec interface {
	GetPrivileged() bool
	GetNetwork() string
	GetMounts() []*v1.Mount
	GetCapAdd() []string
}

// Needs returns what a container requires a node to allow, or nil if it requires nothing. Mounts are in the order of the spec;
// capabilities are sorted.
func Needs(spec Spec) *historyv1.ContainerNeeds {
	needs := &historyv1.ContainerNeeds{Privileged: spec.GetPrivileged(), HostNetwork: spec.GetNetwork() == HostNetwork}
	for _, m := range spec.GetMounts() {
		needs.Mounts = append(needs.Mounts, &v1.MountRule{Path: path.Clean(m.GetHostPath()), ReadOnly: m.GetReadOnly()})
	}
	for _, name := range spec.GetCapAdd() {
		needs.Capabilities = append(needs.Capabilities, Capability(name))
	}
	slices.Sort(needs.Capabilities)
	needs.Capabilities = slices.Compact(needs.Capabilities)
	if !needs.GetPrivileged() && !needs.GetHostNetwork() && len(needs.GetMounts())+len(needs.GetCapabilities()) == 0 {
		return nil
	}
	return needs
}

// Capability returns the canonical name of a Linux capability: "NET_ADMIN" for "cap_net_admin".
func Capability(name string) string {
	return strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(name)), "CAP_")
}
