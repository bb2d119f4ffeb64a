// Package dataflow builds the messages that carry data from tasks to those after them: what nodes are sent, what expressions see,
// and the input of a partition. It also has the queue of expressions that are to be evaluated.
//
// A message may need calls of the store before it is whole: the outputs of a fan-out are collected, and large data is stored so
// that many requests can refer to it. So a [Draft] returns either the message or the next [Call], and continues from the answer:
//
//	Draft ── ExecuteRequest, EvaluateRequest, PartitionInput ──> message
//	  ▲                          └── Call ──> the store ──┐
//	  └───────────────────── Answered ────────────────────┘
//
// The order of the calls is fixed: context, input, collected parents in their order, views, ancestors.
//
// The package is pure: it imports proto, workflows/core/command, workflows/core/dag, workflows/core/fanout, workflows/core/flight,
// workflows/definition, workflows/names and workflows/structs, and nothing of Temporal.
package dataflow
