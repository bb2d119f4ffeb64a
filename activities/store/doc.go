// Package store keeps what is too large or lives too long for Temporal's
// history: result records, statuses of ended runs, state carried from one
// execution of a run to the next, and the chunks of logs. A store is a blob
// bucket, named by a URL; keys.go lays out its keys.
//
// The package may import proto and libraries; it knows no Temporal and nothing
// of what its values mean.
package store
