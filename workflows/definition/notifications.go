package definition

import (
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// notifications checks the expressions of `notify`.
func (s *sight) notifications(def *v1.Definition) {
	for i, n := range def.GetNotify() {
		p := s.base.Field("notify").Item(i)
		if _, err := condition.Check(n.GetIf(), condition.Scope{Kind: condition.Notify}); err != nil {
			s.badExpression(err, p.Field("if"))
		}
		if _, err := condition.CheckTemplate(n.GetMessage(), condition.Scope{Kind: condition.Message}); err != nil {
			s.badExpression(err, p.Field("message"))
		}
	}
}
