// Package enginetest provides a container engine to tests. Without an engine, tests
// that need one fail if the environment variable CI is set, and are skipped
// otherwise.
package enginetest
