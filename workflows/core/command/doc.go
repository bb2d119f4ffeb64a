// Package command decides whether what people ask of a run can be done now, and says why not.
//
// The package is pure: it imports proto, workflows/core/dag, workflows/core/fanout, workflows/core/flight and workflows/names, and
// nothing of Temporal.
package command
