package gateway

import (
	"slices"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// What the calls of users do with an approved run. docs/operations/access.md has the same list for people.
const (
	startsAnother = "starts another run, which waits for its own approval"
	mayWait       = "waits for approval again if it changes or repeats what was approved"
	steers        = "decides when and whether tasks run, and never what they run"
	answers       = "gives what the definition asks people for"
	sends         = "stores files for a run that is to be submitted; an approved run has its own list of them"
	doorKey       = "adds an SSH key, with which sessions have the same limits"
)

// callsOfUsers lists the calls that write and are open to users. Sessions are no calls; see TestSessionChangesNoApprovedTask.
var callsOfUsers = map[string]string{
	"RunService.SubmitRun": startsAnother, "RunService.RerunRun": startsAnother, "WorkflowService.TriggerWorkflow": startsAnother,
	"TaskService.SubmitTask": startsAnother, "TaskService.SubmitTasks": startsAnother, "VpsService.CreateVps": startsAnother,

	"RunService.RetryRun": mayWait,

	"BlobService.PutBlob": sends,

	"RunService.RetryDeadLetter": steers, "RunService.PurgeDeadLetter": steers, "RunService.CancelRun": steers,
	"RunService.PauseRun": steers, "RunService.ResumeRun": steers, "RunService.HoldTask": steers, "RunService.ReleaseTask": steers,
	"RunService.CancelTask": steers, "RunService.PauseTask": steers, "RunService.ResumeTask": steers, "RunService.StopTask": steers,
	"RunService.RestartTask": steers, "RunService.KillTask": steers, "RunService.ApproveTask": answers, "RunService.RejectTask": steers,
	"VpsService.StopVps": steers, "VpsService.RestartVps": steers, "VpsService.KillVps": steers,

	"KeyService.AddKey": doorKey, "KeyService.RemoveKey": doorKey,
}

// steeringFields are the fields of requests that name what they steer, and why.
var steeringFields = []string{"id", "run", "task", "reason", "force", "now", "request_id"}

// TestEveryCallOfUsersHasARuleForApprovedRuns compares the list with the services, so that a new call, or a new field of one that
// steers, is decided about.
func TestEveryCallOfUsersHasARuleForApprovedRuns(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			call := service.Methods().Get(i)
			rules := v1.RulesOf(call)
			if rules.GetEffect() != v1.Effect_EFFECT_WRITE || !v1.Role_ROLE_USER.Includes(rules.GetRole()) {
				continue
			}
			name := string(service.Name()) + "." + string(call.Name())
			found[name] = true
			if callsOfUsers[name] == "" {
				t.Errorf("%s has no rule for approved runs", name)
			}
			for k := range call.Input().Fields().Len() {
				field := string(call.Input().Fields().Get(k).Name())
				if callsOfUsers[name] == steers && !slices.Contains(steeringFields, field) {
					t.Errorf("%s has the field %s, which may change what tasks run", name, field)
				}
			}
		}
	}
	for name := range callsOfUsers {
		if !found[name] {
			t.Errorf("%s is no call of users", name)
		}
	}
}
