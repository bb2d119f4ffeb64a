package placement

import (
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// gamingLabel marks machines that people use for gaming.
const gamingLabel = "gaming"

// filter is one feasibility check.
type filter struct {
	name string
	fits func(*view) bool
	why  func(*view) phrase // called only if fits returns false
}

// nodeFilters returns the filters for properties that all nodes of a node class share. A node that
// fails one of them could never run the request, however idle it is.
func nodeFilters() []filter { return slices.Concat(traitFilters(), totalFilters()) }

// identityFilters returns the filters for the node's name.
func identityFilters() []filter {
	return []filter{
		{"targetNode",
			func(v *view) bool {
				return v.targetErr == nil && (v.target.Node == "" || v.target.Node == v.n.name)
			},
			func(v *view) phrase {
				if v.targetErr != nil {
					return phrase{verb: does, object: "not fit: " + v.targetErr.Error()}
				}
				return phrase{verb: is, object: "not the target node " + v.target.Node}
			},
		},
		{"allowedNodes",
			func(v *view) bool {
				allowed := v.constraints.GetAllowedNodes()
				return len(allowed) == 0 || slices.Contains(allowed, v.n.name)
			},
			func(*view) phrase { return phrase{verb: is, object: "not among the allowed nodes"} },
		},
		{"forbiddenNodes",
			func(v *view) bool { return !slices.Contains(v.constraints.GetForbiddenNodes(), v.n.name) },
			func(*view) phrase { return phrase{verb: is, object: "forbidden"} },
		},
	}
}

// traitFilters returns the filters for the properties that the node declares.
func traitFilters() []filter {
	return []filter{
		{"type",
			func(v *view) bool { return v.hasExecutor(v.taskType) },
			func(v *view) phrase {
				object := "not run " + v.taskType + " tasks"
				if reason := v.n.snap.GetWithheld()[v.taskType]; reason != "" {
					object += ": " + reason
				}
				return phrase{verb: does, object: object}
			},
		},
		{"requiresExecutors",
			func(v *view) bool { return len(v.missing(v.constraints.GetRequiresExecutors(), v.hasExecutor)) == 0 },
			func(v *view) phrase {
				types := v.missing(v.constraints.GetRequiresExecutors(), v.hasExecutor)
				return phrase{verb: does, object: "not run " + strings.Join(types, ", ") + " tasks"}
			},
		},
		{"nodeLabels",
			func(v *view) bool { return len(v.missing(v.constraints.GetNodeLabels(), v.hasLabel)) == 0 },
			func(v *view) phrase {
				labels := v.missing(v.constraints.GetNodeLabels(), v.hasLabel)
				return phrase{verb: lacks, object: noun("label", len(labels)) + strings.Join(labels, ", ")}
			},
		},
		{"anyLabels",
			func(v *view) bool {
				labels := v.constraints.GetAnyLabels()
				return len(labels) == 0 || slices.ContainsFunc(labels, v.hasLabel)
			},
			func(v *view) phrase {
				return phrase{verb: has, object: "none of the labels " + strings.Join(v.constraints.GetAnyLabels(), ", ")}
			},
		},
		{"avoidGaming",
			func(v *view) bool {
				// A user who is playing now will stop at some point.
				return !v.constraints.GetAvoidGaming() || v.n.snap.GetGaming() || !v.hasLabel(gamingLabel)
			},
			func(*view) phrase { return phrase{verb: has, object: "label " + gamingLabel} },
		},
		{"requiresCapabilities",
			func(v *view) bool { return len(v.missingCapabilities()) == 0 },
			func(v *view) phrase { return v.capabilityPhrase() },
		},
		{"containers",
			func(v *view) bool { return len(v.refusals()) == 0 },
			func(v *view) phrase {
				return phrase{verb: does, object: "not allow " + strings.Join(v.refusals(), ", nor ")}
			},
		},
		{"offline",
			func(v *view) bool { return v.n.state != v1.NodeOffline },
			func(v *view) phrase { return phrase{verb: is, object: v.n.stateObject()} },
		},
	}
}
