package switchyardv1

import "google.golang.org/protobuf/types/known/structpb"

// Backends of machines, the values of VpsSpec.backend.
const (
	BackendDocker = "docker" // default
	BackendQEMU   = "qemu"
)

// Capabilities of nodes that can run virtual machines.
const (
	// QEMUCapability is "true" on nodes with QEMU.
	QEMUCapability = "qemu"
	// KVMCapability is "true" on nodes whose processors support virtual machines. Other nodes emulate
	// the processor.
	KVMCapability = "kvm"
)

// WithheldQEMU is the key in NodeSnapshot.withheld for the reason why a node with QEMU runs no virtual
// machines.
const WithheldQEMU = "vps with backend qemu"

// GuestAddress is the address of a virtual machine in its own network.
const GuestAddress = "10.0.2.15"

// BackendOf returns the backend in the JSON form of a VpsSpec, or the default.
func BackendOf(spec *structpb.Struct) string {
	if backend := spec.GetFields()["backend"].GetStringValue(); backend != "" {
		return backend
	}
	return BackendDocker
}
