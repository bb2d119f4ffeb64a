// Package registry reads and changes the registry of nodes: the workflows Node,
// one for each name, with the newest heartbeat of each. The gateway shows it to
// people, a node registers itself through it, and the control process builds its
// picture of the fleet from it.
//
// It may import proto, workflows/names and the Temporal SDK.
package registry
