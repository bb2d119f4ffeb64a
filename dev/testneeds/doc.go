// Package testneeds is for tests that need something of their machine: elsewhere they are skipped, and in CI, whose
// machine has it, they fail instead, so that no test is left out there unnoticed. Only tests import it.
package testneeds
