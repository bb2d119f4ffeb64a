package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// These are the flags of a node's command that allow what is refused without them.
const (
	PrivilegedFlag  = "--allow-privileged"
	HostNetworkFlag = "--allow-host-network"
	MountFlag       = "--allow-mount"
	CapabilityFlag  = "--allow-cap"
)

// Refusals returns what a container requires and a node does not allow, each with the flag that would allow it. If there are
// none, the container may run there. A refusal completes "does not allow". Paths are compared as written; the node itself must
// check where links lead.
func Refusals(allowed *v1.ContainerPolicy, needs *historyv1.ContainerNeeds) []string {
	var refused []string
	if needs.GetPrivileged() && !allowed.GetPrivileged() {
		refused = append(refused, "privileged containers"+by(allowed, PrivilegedFlag))
	}
	if needs.GetHostNetwork() && !allowed.GetHostNetwork() {
		refused = append(refused, "the host's network"+by(allowed, HostNetworkFlag))
	}
	for _, m := range needs.GetMounts() {
		if r := mountRefusal(allowed, m); r != "" {
			refused = append(refused, r)
		}
	}
	for _, name := range needs.GetCapabilities() {
		if !slices.Contains(allowed.GetCapabilities(), name) && !slices.Contains(allowed.GetCapabilities(), AllCapabilities) {
			refused = append(refused, "the capability "+name+by(allowed, CapabilityFlag+" "+name))
		}
	}
	return refused
}

// by returns the remedy for a refusal, in parentheses.
func by(allowed *v1.ContainerPolicy, flag string) string { return " (" + Remedy(allowed, flag) + ")" }

// Remedy returns the command that starts a node with a policy and with a flag that allows more.
func Remedy(allowed *v1.ContainerPolicy, flag string) string {
	return "switchyard " + cmp.Or(allowed.GetCommand(), "worker") + " " + flag
}

// mountRefusal returns why a directory may not be mounted, or "" if it may.
func mountRefusal(allowed *v1.ContainerPolicy, m *v1.MountRule) string {
	reading := false
	for _, r := range allowed.GetMounts() {
		switch {
		case !covers(r.GetPath(), m.GetPath()):
		case r.GetReadOnly() && !m.GetReadOnly():
			reading = true
		default:
			return ""
		}
	}
	flag := by(allowed, MountFlag+" "+m.GetPath())
	if reading {
		return "mounting " + m.GetPath() + " without readOnly: true" + flag
	}
	return "mounting " + m.GetPath() + flag
}

// sockets are the sockets of container engines. Access to one gives root on the node.
var sockets = []string{
	"/run/docker.sock", "/var/run/docker.sock",
	"/run/podman/podman.sock", "/var/run/podman/podman.sock",
	"/run/containerd/containerd.sock", "/var/run/containerd/containerd.sock",
}

// Sockets returns the paths of the engines' sockets. Allowing a directory around a socket does not allow the socket.
func Sockets() []string { return slices.Clone(sockets) }

// covers reports whether a rule for a directory applies to a path.
func covers(dir, wanted string) bool {
	return dir == wanted || Below(dir, wanted) && !slices.Contains(sockets, wanted)
}

// Below reports whether a clean absolute path is inside a directory, at any depth.
func Below(dir, wanted string) bool {
	return path.IsAbs(wanted) && wanted != dir && strings.HasPrefix(wanted, strings.TrimSuffix(dir, "/")+"/")
}
