package definition

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

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
		"approvers: {name: [ann]}":                                         "did you mean names?",
		"approvals: 0":                                                     "spec.approvals is 0; it must be 1 to 10",
		"remindAfter: soon":                                                "duration",
		"inputs: {by: {}}":                                                 "the output of an approval has a field by of its own",
		"inputs: {tag: {required: true}}, timeout: 1h, onTimeout: approve": "input tag is required, and onTimeout: approve has no value for it",
		"inputs: {tag: {default: 1.10, pattern: \"[0-9.]+\"}}, roles: [operator]": "",
		"inputs: {tag: {default: v1, pattern: \"[0-9]+\"}}":                       "it must match [0-9]+",
		"inputs: {tag: {pattern: \"a(b\"}}":                                       "is not a regular expression",
		"inputs: {tag: {pattern: \"a)|(b\"}}":                                     "is not a regular expression",
		"inputs: {n: {type: integer, pattern: \"[0-9]+\"}}":                       "a pattern is for texts",
		"inputs: {n: {type: integer, default: many}}":                             "it must be a whole number",
		"inputs: {tag: {default: \"${{ workflow.input.tag }}\"}}":                 "${{",
		"inputs: {tag: {default: a, enum: [b, c]}}":                               "it must be b or c",
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

// TestApprovalInputIsBounded checks the size of what an approver fills in, and of its text for people.
func TestApprovalInputIsBounded(t *testing.T) {
	t.Parallel()
	asked := &v1.ApprovalSpec{Inputs: map[string]*v1.InputDefinition{"note": {}, "region": {}, "count": {Type: "integer", Default: structpb.NewNumberValue(2)}}}
	if _, err := ApprovalInput(asked, spec(t, map[string]any{"note": strings.Repeat("x", 17<<10)})); err == nil || !strings.Contains(err.Error(), "the maximum is 16384") {
		t.Errorf("17 KiB: %v", err)
	}
	filled, err := ApprovalInput(asked, spec(t, map[string]any{"region": "eu"}))
	if text := FilledIn(filled); err != nil || text != "count=2, region=eu" {
		t.Errorf("%q, %v", text, err)
	}
	if text := FilledIn(spec(t, map[string]any{"note": strings.Repeat("ä", 1000)})); len(text) > 210 || !strings.HasSuffix(text, "ä...") {
		t.Errorf("%q", text)
	}
}

// TestPatternMatchesTheWholeText gives texts to an input with a pattern, of a run and of an approval.
func TestPatternMatchesTheWholeText(t *testing.T) {
	t.Parallel()
	inputs := map[string]*v1.InputDefinition{"ticket": {Pattern: "OPS-[0-9]+|none"}}
	for text, isGood := range map[string]bool{"OPS-12": true, "none": true, "OPS-12x": false, "xnone": false, "OPS-1\n": false, "": false} {
		given := spec(t, map[string]any{"ticket": text})
		_, err := Input(&v1.Definition{Inputs: inputs}, given)
		_, approval := ApprovalInput(&v1.ApprovalSpec{Inputs: inputs}, given)
		for _, err := range []error{err, approval} {
			if (err == nil) != isGood || err != nil && !strings.Contains(err.Error(), "it must match OPS-[0-9]+|none") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}
