package definition

import (
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestApprovalIsCheckedAndRead(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"roles: [operator]": "",
		"approvers: {roles: [operator], names: [ann], not: submitter}, remindAfter: 1h, timeout: 2h, inputs: {tag: {default: 1.10}}": "",
		"roles: [operator], approvers: {roles: [admin]}":                   "spec.roles is another name for spec.approvers.roles",
		"approvers: {not: owner}":                                          "submitter",
		"approvers: {roles: [root]}":                                       `spec.approvers.roles[0] is "root"`,
		"approvers: {names: [\"${{ workflow.input.who }}\"]}":              "${{",
		"remindAfter: 2h, timeout: 1h":                                     "spec.remindAfter is not shorter than timeout",
		"remindAfter: soon":                                                "duration",
		"inputs: {by: {}}":                                                 "the output of an approval has a field by of its own",
		"inputs: {tag: {required: true}}, timeout: 1h, onTimeout: approve": "input tag is required, and onTimeout: approve has no value for it",
		"inputs: {n: {type: integer, default: many}}":                      "it must be a whole number",
		"inputs: {tag: {default: \"${{ workflow.input.tag }}\"}}":          "${{",
		"inputs: {tag: {default: a, enum: [b, c]}}":                        "it must be b or c",
	} {
		def, err := Parse("w.yaml", []byte("{name: w, tasks: {ask: {type: approval, spec: {"+spec+"}}}}"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
		if err != nil {
			continue
		}
		read := Approval(def.GetTasks()["ask"])
		if roles := read.GetApprovers().GetRoles(); len(roles) != 1 || roles[0] != v1.RoleOperator || len(read.GetRoles()) > 0 {
			t.Errorf("%s: the roles are %v", spec, roles)
		}
		if in := read.GetInputs()["tag"]; in != nil && in.GetDefault().GetStringValue() != "1.10" {
			t.Errorf("%s: the default is %v", spec, in.GetDefault())
		}
	}
}
