// Package procfs finds processes by what Linux shows of them: their parents, their sessions, and the environment variable
// that marks those of an attempt. It also reaps orphans. It imports of this module only package poll. On other systems it
// knows nothing.
package procfs
