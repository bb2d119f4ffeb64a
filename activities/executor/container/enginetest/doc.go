// Package enginetest gives tests a container engine. Tests that need one fail without
// it where the environment variable CI is set, and are skipped elsewhere.
package enginetest
