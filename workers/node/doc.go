// Package node describes the machine that a node runs on: its identity, its load, and what the
// node's attempts hold of it.
//
//	Probe    measures the figures of a snapshot: processors, memory, NUMA nodes,
//	         GPUs, disk, network, and whether a user plays. In a container the
//	         limits are those of the container. Slow readings run in the background.
//	Detect   finds what tasks may ask for: Docker, Kubernetes, NVIDIA.
//	Machine  is shared by the nodes of one process; Measure returns the machine
//	         that the process runs on.
//	Ledger   makes the last check before an attempt starts, so that no core, no
//	         memory and no GPU is ever given to two attempts.
//	NameLock prevents a second process of this machine from using the same node name.
//
// It may import proto, activities/filelock, activities/statedir, gopsutil, a YAML
// reader and the standard library, and knows nothing of Temporal.
package node
