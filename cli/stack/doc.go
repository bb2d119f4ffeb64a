// Package stack runs parts of Switchyard in one process, as a Config chooses them.
//
//	Start ──> private folders ──> store ──> metrics ──> Temporal ──> control ──> nodes ──> gateway
//	Stop  ──> drain of the nodes ──> the parts in reverse order, each within its time
//
// A process that has to exit immediately removes its ExitFolders instead of calling Stop.
//
// It may import everything below package cli, and of that only exit.
package stack
