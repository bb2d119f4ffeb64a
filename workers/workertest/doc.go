// Package workertest starts real clusters for tests: a Temporal server, a control process, a store, and nodes whose executor
// follows a script.
//
// A test gets a cluster from [Shared], [SharedWithin] or [Own], its nodes from [Cluster.Nodes], and submits runs to them:
//
//	c := workertest.Shared(t).Nodes(t, workertest.Script{"build": {fake.Exit(1), {}}})
//	c.Start("a")
//	run := c.Do(`{name: build, tasks: {build: {type: shell, spec: {command: x}, retry: {backoffMs: 1}}}}`)
//	workertest.CheckRun(t, run, "completed", nil)
//
// Functions that wait have [Limit] to succeed and otherwise fail the test. Everything that a test starts ends with it. The
// TestMain of a package that uses this one calls [Main], or [MainBare] if scripts of its own stand in for the control process.
//
// Only tests import this package.
package workertest
