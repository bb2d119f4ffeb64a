// Package policy describes what a container requires a node to allow, and which of it a node refuses: privileges, the host's
// network, its directories, capabilities. The run states the requirements, placement excludes nodes by them, and the node
// checks them again before anything starts. It is pure: it may import proto and the standard library, and looks at no file.
package policy
