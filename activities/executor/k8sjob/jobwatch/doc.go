// Package jobwatch keeps the Jobs of a namespace and their pods in memory, with one watch for each of the two.
//
// It imports nothing of this module.
package jobwatch
