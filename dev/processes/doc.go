// Package processes starts programs as processes of their own and reads what they print. It is for tests, drills and
// benchmarks that need Switchyard as its users run it.
//
// [Start] and the methods of [Process] return errors. On top of them, [Program], [Stack] and the functions that take a
// *testing.T are for tests: they end the test instead. A test waits for events with the package's generous [Limit].
package processes
