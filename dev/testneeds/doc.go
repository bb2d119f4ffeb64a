// Package testneeds is for tests that need something: of their machine ([Missing]), more time than a newcomer has
// ([Long]), company while they wait ([Parallel]), or a program that they build ([Sources]). Only tests import it.
package testneeds
