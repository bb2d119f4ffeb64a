package node

import (
	"io/fs"
	"strings"
)

// longestName is the maximum length of a node name.
const longestName = 63

// machineIDPath is the file in which systemd keeps the identity of an installation.
const machineIDPath = "etc/machine-id"

// shortID is the number of characters of a machine id that distinguish machines with the same host
// name.
const shortID = 8

// MachineID returns the identity of the machine for NodeSnapshot.machine. All nodes with the same
// identity share the machine's cores, memory and GPUs. The identity is the host name, followed by
// the start of the machine id if there is one. Neither is sufficient alone: images are copied
// together with their machine id, and two machines may have the same host name. root is the file
// system from "/".
func MachineID(root fs.FS, hostname string) string {
	name := Name(hostname)
	b, err := fs.ReadFile(root, machineIDPath)
	if err != nil {
		return name
	}
	// The file is empty or contains "uninitialized" in an image that was never booted.
	id := strings.TrimSpace(string(b))
	if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
		return name
	}
	return name + "-" + id[:shortID]
}

// Name converts a host name to a valid node name: at most 63 characters of [a-z0-9.-], beginning
// and ending with a letter or digit. It returns "node" if no valid character remains.
func Name(hostname string) string {
	valid := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}
	name := strings.Trim(strings.Map(valid, strings.ToLower(hostname)), ".-")
	if len(name) > longestName {
		name = strings.TrimRight(name[:longestName], ".-")
	}
	if name == "" {
		return "node"
	}
	return name
}
