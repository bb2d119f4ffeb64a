package placement

import "slices"

// filter is one feasibility check.
type filter struct {
	name string
	fits func(*view) bool
	why  func(*view) phrase // called only if fits returns false
}

// fitsAll reports whether a node passes all filters.
func fitsAll(filters []filter, v *view) bool {
	for i := range filters {
		if !filters[i].fits(v) {
			return false
		}
	}
	return true
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
		{"workspace",
			func(v *view) bool { return v.workspace == nil || v.workspace.GetNode() == v.n.name },
			func(v *view) phrase { return phrase{verb: does, object: "not have workspace " + v.workspace.GetName()} },
		},
		{"allowedNodes",
			func(v *view) bool {
				allowed := v.constraints.GetAllowedNodes()
				return len(allowed) == 0 || v.workspace != nil || slices.Contains(allowed, v.n.name)
			},
			func(*view) phrase { return phrase{verb: is, object: "not among the allowed nodes"} },
		},
		{"forbiddenNodes",
			func(v *view) bool { return !slices.Contains(v.constraints.GetForbiddenNodes(), v.n.name) },
			func(*view) phrase { return phrase{verb: is, object: "forbidden"} },
		},
	}
}
