// Package registry reads and changes the registry of nodes: one workflow Node for each name, with
// the node's newest heartbeat. The gateway shows the registry to people, nodes register through it,
// and control processes build their view of the fleet from it.
//
// It may import proto, activities/heartbeat, workflows/dataconverter, workflows/names, workflows/policy and the Temporal SDK.
package registry
