package definition

import (
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// a2a warns about a workflow that is offered to other agents although they will not find or choose it.
func (d *decoder) a2a(def *v1.Definition, p *source.Path) {
	switch {
	case !def.GetA2A() || d.IsSettled(p):
	case d.depth > 0:
		d.Warn(d.locateKey(p), p, "a2a has no effect in the definition of a task of type run", "`switchyard workflows put` offers a definition that is stored")
	case strings.TrimSpace(def.GetDescription()) == "" && !d.IsSettled(d.base.Field("description")):
		d.Warn(d.locateKey(p), p, "a2a offers the workflow to other agents, and it has no description", "other agents choose a skill by its description")
	}
}
