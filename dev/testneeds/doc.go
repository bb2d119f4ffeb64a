// Package testneeds is for tests with special needs: something of their machine ([Missing], [Sources]), a lot of time
// ([Long]), concurrent tests while they wait ([Parallel]), or many cases ([Checks]). Only tests import it.
package testneeds
