// Package testneeds is for tests that need something: of their machine ([Missing]), more time than a newcomer has
// ([Long], [Checks]), or company while they wait ([Parallel]). Only tests import it.
package testneeds
