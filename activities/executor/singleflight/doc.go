// Package singleflight does a piece of work once that several attempts need at a time, such as the pull of an image or the
// download of a disk. Unlike golang.org/x/sync/singleflight it tells every caller of the progress, and ends the work when the
// last caller leaves.
//
// It imports nothing of Switchyard.
package singleflight
