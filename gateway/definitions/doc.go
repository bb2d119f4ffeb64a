// Package definitions reads and checks the definitions of requests: documents, messages and the names of stored workflows. It
// fills in the defaults of the fleet, and finds references to workflows that are not stored.
//
// Of this module it may import proto, activities/executor, activities/library, gateway/rpcerror, workflows/definition,
// workflows/definition/source, workflows/nearest and workflows/policy.
package definitions
