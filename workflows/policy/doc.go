// Package policy describes what a task requires of a node, and which of it a node refuses: privileges of containers, the host's
// network, its directories, capabilities, and whatever else the settings of a worker permit or lack. The run states the
// requirements, placement excludes nodes by them, and the node checks them again before anything starts. The terms of
// a node say what it is kept for, and when it takes tasks. The package is pure: it may import proto, workflows/cron and the standard
// library, and looks at no file.
package policy
