package switchyardv1

import "google.golang.org/protobuf/types/known/structpb"

// Backends of machines: VpsSpec.backend.
const (
	BackendDocker = "docker" // the default
	BackendQEMU   = "qemu"
)

// Capabilities of nodes that can run virtual machines.
const (
	// QEMUCapability is "true" of nodes that have QEMU.
	QEMUCapability = "qemu"
	// KVMCapability is "true" of nodes whose processors run virtual machines; the others emulate them.
	KVMCapability = "kvm"
)

// WithheldQEMU is the key in NodeSnapshot.withheld of why a node with QEMU runs no virtual machines.
const WithheldQEMU = "vps with backend qemu"

// GuestAddress is the address that a virtual machine has in its network.
const GuestAddress = "10.0.2.15"

// BackendOf returns the backend of a VpsSpec in its JSON form.
func BackendOf(spec *structpb.Struct) string {
	if backend := spec.GetFields()["backend"].GetStringValue(); backend != "" {
		return backend
	}
	return BackendDocker
}
