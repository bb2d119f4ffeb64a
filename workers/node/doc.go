// Package node is what a node knows of the machine that it is on: who it is,
// how busy the machine is, and what of it the node's attempts hold. The probe
// reads figures for snapshots; the ledger does the last check before an attempt
// starts, so that nothing is ever handed out twice.
//
// It may import proto, gopsutil and the standard library, and knows nothing of
// Temporal.
package node
