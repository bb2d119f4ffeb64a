// Package testneeds is for tests with special needs: something of their machine ([Missing], [Sources], [Program]), a lot of time
// ([Long]), concurrent tests while they wait ([Parallel]), a condition that comes to hold ([Await], [Output]), many cases
// ([Checks]), a port ([FreePort]), or goroutines that must end ([NoLeaks]).
// Only tests import it.
package testneeds
