// Package schedules reads and steers the Temporal Schedules that start runs: those of stored workflows, which package
// library makes, and those that a person or a program has made in Temporal to start the workflow Run.
//
//	definition ── SpecOf, PoliciesOf ──> Temporal Schedule ── Describe, List ──> v1.Schedule
//
// Everything that it shows is read from Temporal, so that what Temporal's own tools have changed shows as it is. A stored
// workflow whose schedule has no times, because its definition has none, is no schedule here.
//
// A backfill starts what has not been started: Temporal's own would start a second run under the id of the first.
//
// It may import proto, workflows/cron, workflows/definition, workflows/names and the Temporal SDK.
package schedules
