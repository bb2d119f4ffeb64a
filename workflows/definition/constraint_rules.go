package definition

import (
	"slices"
	"strconv"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/names"
	"switchyard/workflows/nearest"
	"switchyard/workflows/policy"
)

// constraintRules checks the names in the constraints of a task or of the defaults.
type constraintRules struct{ *decoder }

// check reports names of nodes and executors, and tolerations, in constraints that are not valid.
func (r constraintRules) check(c *v1.Constraints, p *source.Path) {
	if c.GetTargetNode() != "" {
		r.target(c.GetTargetNode(), p.Field("targetNode"))
	}
	lists := []struct {
		field string
		names []string
	}{{"allowedNodes", c.GetAllowedNodes()}, {"forbiddenNodes", c.GetForbiddenNodes()}}
	for _, list := range lists {
		for i, name := range list.names {
			at := p.Field(list.field).Item(i)
			if !names.IsNode(name) {
				r.badNodeName(r.locate(at), at, name)
			}
		}
	}
	for i, kind := range c.GetRequiresExecutors() {
		r.executor(kind, p.Field("requiresExecutors").Item(i))
	}
	for i, word := range c.GetTolerates() {
		if at := p.Field("tolerates").Item(i); !policy.IsLabel(word) {
			hint := "leave out spaces, commas and ="
			if label := policy.TolerationOf(word); label != word {
				hint = repaired(label, "")
			}
			r.Add(r.locate(at), at, at.Local()+" is "+source.Quote(word)+"; it must be "+policy.GPUTaint+" or a label", hint)
		}
	}
}

// executor checks the name of an executor, which is that of a task type.
func (r constraintRules) executor(name string, p *source.Path) {
	field := (&v1.TaskDefinition{}).ProtoReflect().Descriptor().Fields().ByName("type")
	words := slices.DeleteFunc(rulesOf(field).in, func(kind string) bool { return !v1.NeedsNode(kind) })
	if slices.Contains(words, name) {
		return
	}
	hint := wordHint(name, field, words)
	if !v1.NeedsNode(name) {
		hint = "tasks of type " + name + " need no node"
	}
	r.Add(r.locate(p), p, p.Local()+" is "+source.Quote(name)+"; it must be "+nearest.Alternatives(words), hint)
}

func (r constraintRules) badNodeName(at source.Position, p *source.Path, name string) {
	r.Add(at, p, "node name "+source.Quote(name)+" is not allowed: at most 63 of a-z, 0-9, '.' and '-', the first and the last a letter or digit",
		repaired(notInNode().ReplaceAllString(strings.ToLower(name), "-"), ".-"))
}

// target checks "node[:numa][::gpus]", where gpus is a count (2) or indices (0,1).
func (r constraintRules) target(target string, p *source.Path) {
	at := r.locate(p)
	parts := targetNode().FindStringSubmatch(target)
	if parts == nil {
		r.Add(at, p, p.Local()+" is "+source.Quote(target)+`; it must be "node", "node:NUMA", "node::GPUS" or "node:NUMA::GPUS"`,
			`GPUS is a count such as 2, or indices such as 0,1`)
		return
	}
	if !names.IsNode(parts[1]) {
		r.badNodeName(at, p, parts[1])
	}
	if indices := strings.Split(parts[3], ","); len(indices) > 1 {
		seen := map[int]bool{}
		for _, index := range indices {
			n, _ := strconv.Atoi(index) // the pattern allows only digits
			if seen[n] {
				r.Add(at, p, p.Local()+" names GPU "+index+" twice", "")
			}
			seen[n] = true
		}
	} else if parts[3] != "" && strings.Trim(parts[3], "0") == "" {
		r.Add(at, p, p.Local()+" asks for 0 GPUs", "a single number after :: is a count; indices need a comma, such as 0,1")
	}
}
