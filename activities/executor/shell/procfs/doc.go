// Package procfs finds processes through Linux's /proc: by their parents, by their sessions, and by the environment
// variable that marks the processes of an attempt. It also reaps orphans. It imports activities/executor/shell/poll and
// nothing else of this module. On other systems it finds no process.
package procfs
