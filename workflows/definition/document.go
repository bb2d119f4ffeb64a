package definition

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// document is a definition that is read and then checked: one that a file or a message holds, or an inline one.
type document struct {
	*decoder
	reader *messageReader
	inner  map[string]*v1.Definition // inline definitions, with those inside of them, by the path of the spec
	stored *[]StoredReference        // from this definition and its inline definitions
}

func newDocument(d *decoder, stored *[]StoredReference) *document {
	doc := &document{decoder: d, inner: map[string]*v1.Definition{}, stored: stored}
	doc.reader = &messageReader{decoder: d, unknown: &unknownFields{decoder: d}, inline: doc.inline}
	return doc
}

// read decodes the document. specs holds the tasks' specs as messages of their types, without unreadable ones.
func (d *document) read(n *source.Node) (def *v1.Definition, specs map[string]proto.Message) {
	if d.places == nil {
		d.places = map[string]place{}
	}
	def = &v1.Definition{}
	if n.Kind != source.Mapping {
		d.Fail(n.At, d.base, "a definition is a mapping with name and tasks; this is "+n.String(), "")
		return def, nil
	}
	d.places[d.base.String()] = place{n.At, n}
	d.reader.message(n, def.ProtoReflect(), d.base)
	d.reader.unknown.settleMeant()
	specs = d.complete(def)
	d.reader.unknown.settleMeant()
	return def, specs
}

// complete brings a definition into its canonical form: tasks have their inherited values, and specs the shape of their types.
// It returns the specs as messages.
func (d *document) complete(def *v1.Definition) map[string]proto.Message {
	defaults := defaultsReader{decoder: d.decoder}
	inputRules{d.decoder}.restoreTexts(def.GetInputs(), d.base.Field("inputs"))
	defaults.inherit(def)
	matrixReader{d.decoder}.replaceAll(def)
	setGangCounts(def)
	specs := make(map[string]proto.Message, v1.CountTasks(def))
	for _, name := range v1.TaskNames(def) {
		task, at := v1.TaskNamed(def, name), taskPath(d.base, def, name).Field("spec")
		n := source.StructNode(task.GetSpec())
		if d.places != nil {
			n = d.places[at.String()].value
		}
		spec, canonical := d.reader.spec(task.GetType(), n, at)
		if spec != nil {
			specs[name] = spec
		}
		if task.Spec != nil {
			task.Spec = canonical
		}
		defaults.inheritShell(spec, canonical, at)
		defaults.dropUnused(name, task)
	}
	defaults.warnOfUnused()
	for _, task := range def.GetFinally() {
		if task.GetTimeout() == "" && needsNode(task) {
			task.Timeout = finallyTaskTimeout
		}
	}
	return specs
}

// MaxContextBytes is the largest context of a run, and therefore of a definition, in bytes of its protobuf encoding.
const MaxContextBytes = 256 << 10

// check applies every rule to a decoded definition. specs holds the specs of its tasks as messages of their types.
func (d *document) check(def *v1.Definition, specs map[string]proto.Message) {
	misplacedTemplates{d.decoder}.check(def.ProtoReflect(), d.base)
	modelRules{d.decoder}.validate(def, d.base)
	if size := proto.Size(def.GetContext()); size > MaxContextBytes {
		p := d.base.Field("context")
		d.Add(d.locate(p), p, fmt.Sprintf("context takes %d bytes; the limit is %d", size, MaxContextBytes), "keep large data in files, and their names in the context")
	}
	workflowRules{d.decoder}.name(def.GetName(), d.base.Field("name"))
	inputRules{d.decoder}.declared(def.GetInputs(), d.base.Field("inputs"))
	d.duration(def.GetDeadline(), d.base.Field("deadline"))
	d.durationOr(def.GetExpectedWithin(), d.base.Field("expectedWithin"), `"0" means any time`)
	workflowRules{d.decoder}.concurrency(def.GetConcurrency(), d.base.Field("concurrency"))
	scheduleRules{d.decoder}.check(def, d.base.Field("schedule"))
	workflowRules{d.decoder}.a2a(def, d.base.Field("a2a"))
	finallyRules{d.decoder}.check(def)
	taskRules{d, &taskWarnings{decoder: d.decoder}}.checkAll(def, specs)
	g := graphRules{d.decoder}.dependencies(def)
	graphRules{d.decoder}.cycles(def, g)
	view := newSight(d.decoder, def, g)
	view.doubter = newDoubter(def)
	view.expressions(def)
	view.notifications(def)
	workflowRules{d.decoder}.source(def.GetSource(), d.base.Field("source"))
	if d.depth == 0 {
		nestedLocks{d, map[string]semaphoreLimit{}}.check(def, d.base, nil)
	}
}

// checked returns the definition with its warnings, or all problems.
func (d *document) checked(def *v1.Definition) (Checked, error) {
	if err := d.Err(); err != nil {
		return Checked{}, err
	}
	checked := Checked{Definition: def, Warnings: d.Warnings(), Stored: *d.stored}
	isOwn := func(r StoredReference) bool { return r.Name == def.GetName() }
	if own := slices.IndexFunc(checked.Stored, isOwn); own >= 0 && slices.Contains(CertainRuns(def), def.GetName()) {
		problem := proto.CloneOf(checked.Stored[own].Place)
		problem.Message = "every run of " + def.GetName() + " starts another run of it, if this is the definition that is stored under the name"
		problem.Hint = "`switchyard workflows put` refuses it; give the task a condition"
		checked.Warnings = append(checked.Warnings, problem)
	}
	for i, n := range def.GetNotify() {
		p := d.base.Field("notify").Item(i).Field("to")
		checked.Told = append(checked.Told, StoredReference{Name: n.GetTo(), Place: d.Place(d.locate(p), p)})
	}
	for _, name := range v1.TaskNames(def) {
		for i, word := range v1.TaskNamed(def, name).GetConstraints().GetTolerates() {
			isWord := func(r StoredReference) bool { return r.Name == word }
			if p := taskPath(d.base, def, name).Field("constraints").Field("tolerates").Item(i); !slices.ContainsFunc(checked.Tolerated, isWord) {
				checked.Tolerated = append(checked.Tolerated, StoredReference{Name: word, Place: d.Place(d.locate(p), p)})
			}
		}
	}
	if p := d.base.Field("schedule"); def.GetSchedule() != nil {
		checked.Schedule = d.Place(d.locateKey(p), p)
	}
	return checked, nil
}

// noteStored records a place that names a stored workflow.
func (d *document) noteStored(name string, p *source.Path) {
	*d.stored = append(*d.stored, StoredReference{Name: name, Place: d.Place(d.locate(p), p)})
}

// maxInline is the deepest nesting of inline definitions.
const maxInline = 8

// inline decodes and checks the definition in the spec of a task of type run, and returns it in canonical form. It is a
// definition like any other and sees nothing of the enclosing one.
func (d *document) inline(n *source.Node, p *source.Path) (*structpb.Struct, bool) {
	if d.depth >= maxInline {
		d.Fail(n.At, p, fmt.Sprintf("definitions are nested more than %d deep", maxInline), "store the inner ones and refer to them with workflow")
		return nil, false
	}
	if n.Kind != source.Mapping {
		d.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a definition, a mapping with name and tasks", "to name a stored definition, use spec.workflow")
		return nil, false
	}
	inner := newDocument(&decoder{Report: d.Report, base: p.Inline(), depth: d.depth + 1, places: d.places}, d.stored)
	inner.inner = d.inner
	def, specs := inner.read(n)
	inner.check(def, specs)
	d.inner[p.Parent.String()] = def
	canonical := &structpb.Struct{}
	data, err := protojson.Marshal(def)
	if err == nil {
		err = protojson.Unmarshal(data, canonical)
	}
	return canonical, err == nil // what cannot be written has already been reported
}
