// Package testneeds is for tests that need something: of their machine ([Missing], [Sources]), more time than a newcomer
// has ([Long]), company while they wait ([Parallel]), or many cases ([Checks]). Only tests import it.
package testneeds
