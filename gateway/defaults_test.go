package gateway

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
)

// The fleet's defaults are written into what a run starts with, and change nothing that a definition says.
func TestRunDefaults(t *testing.T) {
	t.Parallel()
	const document = `
name: defaults
tasks:
  plain: { type: shell, spec: { command: x } }
  own: { type: shell, spec: { command: x }, timeout: 5s }
  endless: { type: shell, spec: { command: x }, timeout: 0 }
  gate: { type: approval, spec: { message: "go?" } }
`
	g := &Gateway{config: Config{Defaults: RunDefaults{Timeout: time.Hour, FailurePolicy: "halt", PickupTimeout: time.Minute}}}
	in, err := g.prepare(t.Context(), &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document}})
	if err != nil {
		t.Fatal(err)
	}
	for task, want := range map[string]string{"plain": "1h0m0s", "own": "5s", "endless": "0", "gate": ""} {
		if got := in.GetDefinition().GetTasks()[task].GetTimeout(); got != want {
			t.Errorf("%s has the time-out %q, want %q", task, got, want)
		}
	}
	if got := in.GetDefinition().GetFailurePolicy(); got != "halt" {
		t.Errorf("the failure policy is %q", got)
	}
	if got := in.GetOptions().GetPickupTimeout().AsDuration(); got != time.Minute {
		t.Errorf("the pick-up time-out is %s", got)
	}
	in, err = g.prepare(t.Context(), &v1.SubmitRunRequest{
		Source:  &v1.SubmitRunRequest_Document{Document: "failurePolicy: continue\n" + document},
		Options: &v1.RunOptions{PickupTimeout: durationpb.New(2 * time.Second)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if in.GetDefinition().GetFailurePolicy() != "continue" || in.GetOptions().GetPickupTimeout().AsDuration() != 2*time.Second {
		t.Errorf("what was said is replaced: %v, %v", in.GetDefinition().GetFailurePolicy(), in.GetOptions())
	}
	for _, bad := range []RunDefaults{{Timeout: -1}, {FailurePolicy: "stop"}, {PickupTimeout: time.Millisecond}} {
		if bad.validate() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
