// Package procfs finds processes by what Linux shows of them: their parents, their sessions, and the environment variable
// that marks those of an attempt. It also reaps orphans. It imports
// activities/executor/shell/poll and nothing else of this module. On other systems it finds no process.
package procfs
