package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// Approval returns the spec of a checked approval task. Its message may have expressions.
func Approval(task *v1.TaskDefinition) *v1.ApprovalSpec {
	spec := &v1.ApprovalSpec{}
	if text, err := protojson.Marshal(task.GetSpec()); err == nil {
		_ = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, spec) // a checked spec has the form of the message
	}
	if len(spec.GetRoles()) > 0 {
		if spec.Approvers == nil {
			spec.Approvers = &v1.Approvers{}
		}
		spec.Approvers.Roles, spec.Roles = append(spec.Approvers.Roles, spec.Roles...), nil
	}
	return spec
}

// ApprovalTimeout returns how long an approval task waits; 0 means no limit.
func ApprovalTimeout(spec *v1.ApprovalSpec) time.Duration { return duration(spec.GetTimeout()) }

// ReminderDelay returns after what time an approval task reminds people; 0 means never.
func ReminderDelay(spec *v1.ApprovalSpec) time.Duration { return duration(spec.GetRemindAfter()) }

// maxFilledIn bounds the text of what an approver has filled in, in bytes.
const maxFilledIn = 200

// FilledIn returns what an approver has filled in for people, such as "count=2, region=eu".
func FilledIn(input *structpb.Struct) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(input.GetFields())) {
		pairs = append(pairs, name+"="+plainText(input.GetFields()[name]))
	}
	text := strings.Join(pairs, ", ")
	if len(text) > maxFilledIn {
		text = strings.ToValidUTF8(text[:maxFilledIn], "") + "..."
	}
	return text
}

// DecisionFields returns the fields of the output of an approval that say who decided, when and why.
func DecisionFields() []string { return []string{"approvals", "at", "by", "reason"} }

// WhyNotApprover returns why a person may not decide about an approval task, or "" if the person is one of its approvers.
func WhyNotApprover(task string, approvers *v1.Approvers, name, role string, isSubmitter bool) string {
	if isSubmitter && approvers.GetNot() == v1.NotSubmitter {
		return fmt.Sprintf("%s submitted the run; another person must decide about task %s", name, task)
	}
	roles, people := approvers.GetRoles(), approvers.GetNames()
	hasRole := slices.ContainsFunc(roles, func(least string) bool { return v1.ParseRole(role).Includes(v1.ParseRole(least)) })
	if len(roles)+len(people) == 0 || hasRole || slices.Contains(people, name) {
		return ""
	}
	return fmt.Sprintf("task %s requires a decision by %s; %s has the role %s", task, ApproverText(approvers), name, role)
}

// ApproverText returns who may decide about an approval task, such as "the role operator or ann", or "" for everyone.
func ApproverText(approvers *v1.Approvers) string {
	var wanted []string
	if roles := approvers.GetRoles(); len(roles) > 0 {
		wanted = append(wanted, "the role "+strings.Join(roles, " or "))
	}
	return strings.Join(append(wanted, approvers.GetNames()...), " or ")
}

// approvalRules checks the spec of an approval.
type approvalRules struct{ *decoder }

// check applies the rules that the model does not express.
func (r approvalRules) check(spec *v1.ApprovalSpec, p *source.Path) {
	r.duration(spec.GetTimeout(), p.Field("timeout"))
	r.duration(spec.GetRemindAfter(), p.Field("remindAfter"))
	if on := p.Field("onTimeout"); spec.GetOnTimeout() != "" && spec.GetTimeout() == "" && !r.IsSettled(p.Field("timeout")) {
		r.Add(r.locateKey(on), on, "spec.onTimeout has no effect without timeout", "timeout: 24h waits for a day")
	}
	if limit, remind := ApprovalTimeout(spec), p.Field("remindAfter"); limit > 0 && ReminderDelay(spec) >= limit {
		r.Add(r.locateKey(remind), remind, "spec.remindAfter is not shorter than timeout, which ends the wait before", "make it shorter, or leave it out")
	}
	if approvals := p.Field("approvals"); spec.GetApprovals() == 0 && r.hasValue(approvals) {
		r.Add(r.locate(approvals), approvals, "spec.approvals is 0; it must be 1 to 10", "without approvals, one person has to approve")
	}
	if roles := p.Field("roles"); len(spec.GetRoles()) > 0 && len(spec.GetApprovers().GetRoles()) > 0 {
		r.Add(r.locateKey(roles), roles, "spec.roles is another name for spec.approvers.roles, and both are given", "leave roles out")
	}
	misplacedTemplates{r.decoder}.check(spec.GetApprovers().ProtoReflect(), p.Field("approvers"))
	r.inputs(spec, p)
}

// inputs checks the inputs that an approver fills in.
func (r approvalRules) inputs(spec *v1.ApprovalSpec, p *source.Path) {
	inputRules{r.decoder}.declared(spec.GetInputs(), p.Field("inputs"))
	for _, name := range slices.Sorted(maps.Keys(spec.GetInputs())) {
		in, at := spec.GetInputs()[name], p.Field("inputs").Key(name)
		misplacedTemplates{r.decoder}.check(in.ProtoReflect(), at)
		if slices.Contains(DecisionFields(), name) {
			r.Add(r.locateKey(at), at, "the output of an approval has a field "+name+" of its own", "give the input another name")
		}
		if in.GetRequired() && spec.GetOnTimeout() == v1.OnTimeoutApprove {
			r.Add(r.locateKey(at), at, "input "+name+" is required, and onTimeout: approve has no value for it", "give it a default, or leave required out")
		}
	}
}
