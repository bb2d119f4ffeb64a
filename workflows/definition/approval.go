package definition

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// Approval returns the spec of a checked approval task without its message, which may have expressions.
func Approval(task *v1.TaskDefinition) *v1.ApprovalSpec {
	fields := task.GetSpec().GetFields()
	spec := &v1.ApprovalSpec{
		Approvals: int32(fields["approvals"].GetNumberValue()), Timeout: fields["timeout"].GetStringValue(), OnTimeout: fields["onTimeout"].GetStringValue(),
	}
	for _, role := range fields["roles"].GetListValue().GetValues() {
		spec.Roles = append(spec.Roles, role.GetStringValue())
	}
	return spec
}

// ApprovalTimeout returns how long an approval task waits; 0 means no limit.
func ApprovalTimeout(spec *v1.ApprovalSpec) time.Duration { return duration(spec.GetTimeout()) }

// approvalRules checks the specs of approval tasks.
type approvalRules struct{ *decoder }

// check checks the rules for the spec of an approval that the model does not express.
func (r approvalRules) check(spec *v1.ApprovalSpec, p *source.Path) {
	r.duration(spec.GetTimeout(), p.Field("timeout"))
	on := p.Field("onTimeout")
	if spec.GetOnTimeout() != "" && spec.GetTimeout() == "" && !r.IsSettled(on) && !r.IsSettled(p.Field("timeout")) {
		r.Add(r.locateKey(on), on, "spec.onTimeout has no effect without timeout", "timeout: 24h waits for a day")
	}
}
