package testneeds

import "testing"

// Missing ends a test that this machine cannot run, although it should: tests with such needs are in files with the build
// tag engines or kubernetes, so whoever runs them asks for them. The text says what to install.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Fatalf("this machine cannot run the test: "+format, args...)
}
