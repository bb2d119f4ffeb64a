// Package schedules reads and controls the Temporal Schedules that start runs: the schedules of stored workflows, which
// package library creates, and schedules that a person or a program has created in Temporal to start the workflow Run.
//
//	definition ── SpecOf, PoliciesOf ──> Temporal Schedule ── Describe, List ──> v1.Schedule
//
// Everything that the package shows is read from Temporal, so it includes changes by Temporal's own tools. A stored
// workflow without times, because its definition has no schedule, does not count as a schedule here.
//
// A backfill starts only the missing runs: Temporal's own backfill would start a second run under the id of the first.
//
// It may import proto, workflows/cron, workflows/dataconverter, workflows/definition, workflows/names and the Temporal SDK.
package schedules
