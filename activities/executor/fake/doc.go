// Package fake is a scripted executor for tests of the layers above. It starts
// no process and follows its script for each attempt of each task. It may
// import activities/executor, proto and the standard library.
//
// It keeps the contract of executor.Executor, so it can replace a real executor
// anywhere. It works inside a testing/synctest bubble.
package fake
