// Package edge holds what every call passes before its handler: the guard against pages of other sites, the limits,
// the codecs, and the interceptors that log calls and refuse changes.
//
// Of this module it may import proto, gateway/rpcerror, activities/httpguard and workflows/structs.
package edge
