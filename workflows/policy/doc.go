// Package policy says what a container needs a node to allow, and what of that a
// node does not: privileges, the host's network, its directories, capabilities. The
// run says the needs, placement leaves out nodes by them, and the node checks them
// again before anything starts. It is pure: it may import proto and the standard
// library, and looks at no file.
package policy
