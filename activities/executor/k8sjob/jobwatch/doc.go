// Package jobwatch keeps the Jobs of one namespace of a cluster, and their pods, in memory, by one watch of each.
//
// It imports nothing of this module.
package jobwatch
