// Package workflows has no code of its own: each of its folders is a package with one role. It holds the histories that all
// workflows replay.
//
//	run                          the workflows Run and FanOut
//	node, lock, election, explain     one workflow each
//	calls, options, pending      what workflows share in calling activities
//	core/dag, admission          pure: what a run does next, and how much of it at once
//	core/flight, core/fanout, core/child, core/dataflow, core/command     pure: what happens to each part of it
//	view, eventlog, limits       pure: what a run shows, and how much it holds
//	definition, condition, policy     pure: the language
//	names, visibility, phrase, structs     pure: names, search attributes and texts
package workflows
