// Package cgroup finds, makes, fills and clears directories of Linux's cgroups. It imports the limits of
// activities/executor, and activities/executor/shell/poll. On other systems it is empty.
package cgroup
