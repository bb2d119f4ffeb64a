// Package workflows implements WorkflowService over the library of stored definitions.
//
// Of this module it may import proto, activities/library, gateway/definitions, gateway/paging, gateway/rpcerror,
// gateway/schedules, gateway/submission and workflows/definition.
package workflows
