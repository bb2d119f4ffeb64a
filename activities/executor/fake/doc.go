// Package fake is a scripted executor for tests of the layers above: it starts
// no process and does what its script says for each attempt of each task. It
// may import activities/executor and the standard library.
//
// It keeps the contract of executor.Executor, so it can be put wherever a real
// one goes. It works inside a testing/synctest bubble.
package fake
