// Package singleflight shares work that several attempts need at the same time, such as the pull of an image or the download
// of a disk. Unlike golang.org/x/sync/singleflight it reports progress to every caller, and it cancels the work when the last
// caller leaves.
//
// It imports nothing of Switchyard.
package singleflight
