// Package nodes implements NodeService over the node registry. Callers who may not see all runs see no names of running tasks.
//
// Of this module it may import proto, activities/registry, gateway/auth, gateway/paging, gateway/rpcerror, workflows/names
// and workflows/policy.
package nodes
