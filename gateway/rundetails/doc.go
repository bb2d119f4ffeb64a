// Package rundetails serves the calls of RunService that read runs.
//
//	ListRuns, GetRunDefinition, ListRunEvents ──> lists: gateway/runindex, gateway/runview, gateway/runevents
//	GetRun, ListRunTasks, GetRunTask ───────────> tasks ──────┐
//	ListInstances ──────────────────────────────> instances ──┴──> results: records in the store
//	GET .../artifacts/{name}, ListArtifactFiles > files: activities/artifacts
//
// The workflow of a run holds a part of each result; results adds the rest from the store.
//
// Of this module it may import proto, activities/artifacts, activities/store, gateway/definitions, gateway/paging, gateway/rpcerror,
// gateway/runevents, gateway/runindex, gateway/runview, workflows/condition and workflows/names.
package rundetails
