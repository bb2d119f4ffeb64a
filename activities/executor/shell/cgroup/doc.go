// Package cgroup finds, makes, fills and clears directories of Linux's cgroups. It imports of this module the limits of
// package executor, and package poll. On other systems it is empty.
package cgroup
