// Command typecheck reports what does not compile for another system, without compiling anything: it parses the sources of
// packages and their dependencies, and checks the types. That takes a tenth of the processor time of a build for a system
// whose dependencies are not in Go's cache.
//
//	go run ./dev/typecheck GOOS/GOARCH PACKAGE...
package main
