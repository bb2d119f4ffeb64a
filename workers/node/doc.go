// Package node is what a node knows of the machine that it is on: who it is,
// how busy the machine is, and what of it the node's attempts hold.
//
//	Probe    reads the figures of a snapshot: processors, memory, NUMA nodes,
//	         GPUs, disk, network, and whether a user plays. In a container the
//	         limit is the machine. What may hang is read in the background.
//	Detect   finds what tasks may ask for: Docker, Kubernetes, NVIDIA.
//	Machine  is what the nodes of one process share; Measure makes the one that
//	         the process runs on.
//	Ledger   does the last check before an attempt starts, so that no core, no
//	         memory and no GPU is ever handed out twice.
//	NameLock keeps a second process of this machine from being the same node.
//
// It may import proto, activities/filelock, gopsutil, a YAML reader and the
// standard library, and knows nothing of Temporal.
package node
