package definition

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// maxName is the longest name of a workflow, a task or a node, in characters.
const maxName = 63

var (
	workflowName = lazyPattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	nodeName     = lazyPattern(`^[a-z0-9.-]{1,63}$`)
	targetNode   = lazyPattern(`^([^:]+)(?::([0-9]{1,6}))?(?:::([0-9]{1,6}(?:,[0-9]{1,6})*))?$`)
	notInTask    = lazyPattern(`[^A-Za-z0-9_-]+`)
	notInFlow    = lazyPattern(`[^A-Za-z0-9._-]+`)
	notInNode    = lazyPattern(`[^a-z0-9.-]+`)
	notInEnv     = lazyPattern(`[^A-Za-z0-9_]+`)
)

// badKey reports a map key that the rule of its field does not allow.
func (d *decoder) badKey(p *source.Path, field protoreflect.FieldDescriptor) {
	at, name := d.locateKey(p), p.Name
	switch field.FullName() {
	case "switchyard.v1.Definition.tasks":
		d.Add(at, p, "task name "+source.Quote(name)+" is not allowed: at most 63 letters, digits, '-' and '_', the first a letter or digit",
			repaired(notInTask().ReplaceAllString(name, "-"), "-_"))
	case "switchyard.v1.Definition.inputs":
		d.Add(at, p, "input name "+source.Quote(name)+" is not allowed: at most 63 letters, digits and '_', the first no digit", repaired(strings.TrimLeft(notInEnv().ReplaceAllString(name, "_"), "0123456789"), "_"))
	case "switchyard.v1.TaskDefinition.env", "switchyard.v1.TaskDefaults.env",
		"switchyard.v1.TaskDefinition.secret_env", "switchyard.v1.TaskDefaults.secret_env":
		fixed := notInEnv().ReplaceAllString(name, "_")
		if fixed != "" && '0' <= fixed[0] && fixed[0] <= '9' {
			fixed = "_" + fixed
		}
		hint := ""
		if strings.Trim(fixed, "_") != "" {
			hint = "did you mean " + fixed + "?"
		}
		d.Add(at, p, "environment variable "+source.Quote(name)+" is not allowed: letters, digits and '_', the first no digit", hint)
	default:
		d.Add(at, p, "key "+source.Quote(name)+" is not allowed", "")
	}
}

func (d *decoder) badWorkflowName(at source.Position, p *source.Path, name string) {
	if name == "" {
		d.Add(at, p, "name is missing", "a workflow needs a name, such as build-and-deploy")
		return
	}
	d.Add(at, p, "workflow name "+source.Quote(name)+" is not allowed: at most 63 letters, digits, '.', '_' and '-', the first a letter or digit",
		repaired(notInFlow().ReplaceAllString(name, "-"), "._-"))
}

// escapeInKeys must not occur in the name of a workflow, because a store in a folder takes it for an escape sequence.
const escapeInKeys = "__0x"

// checkWorkflowName checks the rule for names that the model cannot express.
func (d *decoder) checkWorkflowName(name string, p *source.Path) {
	if strings.Contains(name, escapeInKeys) && !d.IsSettled(p) {
		d.Add(d.locate(p), p, "workflow name "+source.Quote(name)+" is not allowed: it holds "+escapeInKeys, "did you mean "+strings.ReplaceAll(name, escapeInKeys, "_0x")+"?")
	}
}

// repaired returns the hint for a corrected name, or "". The name has its invalid characters replaced already and must not
// begin or end with a character of trim.
func repaired(name, trim string) string {
	name = strings.Trim(name, trim)
	if len(name) > maxName {
		name = strings.TrimRight(name[:maxName], trim)
	}
	if name == "" {
		return ""
	}
	return "did you mean " + name + "?"
}

// nodes checks the node names of constraints.
func (d *decoder) nodes(c *v1.Constraints, p *source.Path) {
	if c.GetTargetNode() != "" && !d.IsSettled(p.Field("targetNode")) {
		d.target(c.GetTargetNode(), p.Field("targetNode"))
	}
	lists := []struct {
		field string
		names []string
	}{{"allowedNodes", c.GetAllowedNodes()}, {"forbiddenNodes", c.GetForbiddenNodes()}}
	for _, list := range lists {
		for i, name := range list.names {
			at := p.Field(list.field).Item(i)
			if !d.IsSettled(at) && !nodeName().MatchString(name) {
				d.badNodeName(d.locate(at), at, name)
			}
		}
	}
	for i, kind := range c.GetRequiresExecutors() {
		d.executor(kind, p.Field("requiresExecutors").Item(i))
	}
}

// executor checks the name of an executor, which is that of a task type.
func (d *decoder) executor(name string, p *source.Path) {
	field := (&v1.TaskDefinition{}).ProtoReflect().Descriptor().Fields().ByName("type")
	words := slices.DeleteFunc(rulesOf(field).in, func(kind string) bool { return !v1.NeedsNode(kind) })
	if slices.Contains(words, name) || d.IsSettled(p) {
		return
	}
	hint := wordHint(name, field, words)
	if !v1.NeedsNode(name) {
		hint = "tasks of type " + name + " need no node"
	}
	d.Add(d.locate(p), p, p.Local()+" is "+source.Quote(name)+"; it must be "+alternatives(words), hint)
}

func (d *decoder) badNodeName(at source.Position, p *source.Path, name string) {
	d.Add(at, p, "node name "+source.Quote(name)+" is not allowed: at most 63 of a-z, 0-9, '.' and '-'",
		repaired(notInNode().ReplaceAllString(strings.ToLower(name), "-"), ""))
}

// target checks "node[:numa][::gpus]", where gpus is a count (2) or indices (0,1).
func (d *decoder) target(target string, p *source.Path) {
	at := d.locate(p)
	parts := targetNode().FindStringSubmatch(target)
	if parts == nil {
		d.Add(at, p, p.Local()+" is "+source.Quote(target)+`; it must be "node", "node:NUMA", "node::GPUS" or "node:NUMA::GPUS"`,
			`GPUS is a count such as 2, or indices such as 0,1`)
		return
	}
	if !nodeName().MatchString(parts[1]) {
		d.badNodeName(at, p, parts[1])
	}
	if indices := strings.Split(parts[3], ","); len(indices) > 1 {
		seen := map[int]bool{}
		for _, index := range indices {
			n, _ := strconv.Atoi(index) // the pattern allows only digits
			if seen[n] {
				d.Add(at, p, p.Local()+" names GPU "+index+" twice", "")
			}
			seen[n] = true
		}
	} else if parts[3] != "" && strings.Trim(parts[3], "0") == "" {
		d.Add(at, p, p.Local()+" asks for 0 GPUs", "a single number after :: is a count; indices need a comma, such as 0,1")
	}
}
