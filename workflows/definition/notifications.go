package definition

import (
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// ParseNotify reads a list in YAML or JSON with entries like those of `notify` in a definition, and checks it. file names the
// document in messages. The error is Problems.
func ParseNotify(file string, data []byte) ([]*v1.Notification, error) {
	r := &source.Report{File: file}
	tree := r.Read(data)
	if tree == nil {
		return nil, r.Err()
	}
	d := newDocument(&decoder{Report: r, places: map[string]place{}}, nil)
	def, at := &v1.Definition{}, source.Root.Field("notify")
	if tree.Kind != source.Sequence {
		d.Fail(tree.At, at, "this is "+tree.String()+"; it must be a list of entries", "write - { to: TARGET, on: [failed] }")
		return nil, d.Err()
	}
	d.reader.message(&source.Node{Kind: source.Mapping, At: tree.At, Entries: []source.Entry{{Key: "notify", At: tree.At, Value: tree}}}, def.ProtoReflect(), source.Root)
	d.reader.unknown.settleMeant()
	for i, n := range def.GetNotify() {
		modelRules{d.decoder}.validate(n, at.Item(i))
	}
	newSight(d.decoder, def, newGraph(def)).notifications(def)
	return def.GetNotify(), d.Err()
}

// doubtNotification warns about comparisons in the condition of a notification whose outcome is always the same.
func (s *sight) doubtNotification(expression string, p *source.Path) {
	if s.doubter == nil {
		return
	}
	of := condition.Expectation{Kind: condition.Notify, Tasks: s.graph.names, Outcome: s.doubter.outcomes.ofTask, Input: s.doubter.input}
	for _, doubt := range condition.Doubts(expression, of) {
		s.Warn(s.locateInText(expression, doubt.Offset(), p), p, p.Local()+": "+doubt.Message, doubt.Hint)
	}
}

// notifications checks the expressions of `notify`.
func (s *sight) notifications(def *v1.Definition) {
	for i, n := range def.GetNotify() {
		p := s.base.Field("notify").Item(i)
		if _, err := condition.Check(n.GetIf(), condition.Scope{Kind: condition.Notify}); err != nil {
			s.badExpression(err, p.Field("if"))
		}
		s.doubtNotification(n.GetIf(), p.Field("if"))
		if _, err := condition.CheckTemplate(n.GetMessage(), condition.Scope{Kind: condition.Message}); err != nil {
			s.badExpression(err, p.Field("message"))
		}
	}
}
