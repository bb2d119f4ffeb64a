// Package forker starts programs from one OS thread, which the parent-death signal and cgroups v1 require. It imports
// nothing of this module.
package forker
