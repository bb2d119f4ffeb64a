package node

import (
	"io/fs"
	"strings"
)

// longestName is the most characters that the name of a node may have.
const longestName = 63

// machineIDPath is where systemd keeps the identity of an installation.
const machineIDPath = "etc/machine-id"

// shortID is how many characters of a machine id distinguish machines of one host name.
const shortID = 8

// MachineID returns the identity of the machine for NodeSnapshot.machine: all
// nodes that get the same share its cores, memory and GPUs. It is the host name
// with the start of the machine id, where there is one, for neither is enough:
// images are copied with their machine id, and host names are given twice.
// root is the file system from "/".
func MachineID(root fs.FS, hostname string) string {
	name := Name(hostname)
	b, err := fs.ReadFile(root, machineIDPath)
	if err != nil {
		return name
	}
	// The file is empty, or says "uninitialized", in an image that was never booted.
	id := strings.TrimSpace(string(b))
	if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
		return name
	}
	return name + "-" + id[:shortID]
}

// Name makes a valid node name of a host name: at most 63 characters of
// [a-z0-9.-], beginning and ending with a letter or digit; "node" when nothing is left.
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
