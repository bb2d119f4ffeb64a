package definition

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
)

// The fleet's defaults fill open fields of a definition and of options, and change no field that is set.
func TestRunDefaultsFillMissingFields(t *testing.T) {
	t.Parallel()
	const document = `
name: defaults
tasks:
  plain: { type: shell, spec: { command: x } }
  own: { type: shell, spec: { command: x }, timeout: 5s }
  endless: { type: shell, spec: { command: x }, timeout: 0 }
  gate: { type: approval, spec: { message: "go?" } }
  inner: { type: run, spec: { workflow: other } }
`
	d := RunDefaults{Timeout: time.Hour, FailurePolicy: "halt", MaxParallel: 8, PickupTimeout: time.Minute, PickupTimeouts: map[string]time.Duration{"vps": 2 * time.Minute}, SuspicionLimit: 3, HeartbeatTimeout: 5 * time.Minute}
	def, err := Parse("f.yaml", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	d.FillDefinition(def)
	for task, want := range map[string]string{"plain": "1h0m0s", "own": "5s", "endless": "0", "gate": "", "inner": ""} {
		if got := def.GetTasks()[task].GetTimeout(); got != want {
			t.Errorf("%s has the time-out %q, want %q", task, got, want)
		}
	}
	if def.GetFailurePolicy() != "halt" || def.GetMaxParallel() != 8 {
		t.Errorf("the failure policy is %q, maxParallel %d", def.GetFailurePolicy(), def.GetMaxParallel())
	}
	if def, err = Parse("f.yaml", []byte("failurePolicy: continue\nmaxParallel: 2\n"+document)); err != nil {
		t.Fatal(err)
	}
	if d.FillDefinition(def); def.GetFailurePolicy() != "continue" || def.GetMaxParallel() != 2 {
		t.Errorf("the failure policy of the definition becomes %q, maxParallel %d", def.GetFailurePolicy(), def.GetMaxParallel())
	}
	given := &v1.RunOptions{HeartbeatTimeout: durationpb.New(time.Second)}
	if got := d.FillOptions(given); got.GetPickupTimeout().AsDuration() != time.Minute || got.GetHeartbeatTimeout().AsDuration() != time.Second || given.GetPickupTimeout() != nil {
		t.Errorf("%v becomes %v", given, got)
	}
	if got := d.FillOptions(nil); got.GetPickupTimeout().AsDuration() != time.Minute || got.GetHeartbeatTimeout().AsDuration() != 5*time.Minute ||
		got.GetPickupTimeouts()["vps"].AsDuration() != 2*time.Minute || got.GetSuspicionLimit() != 3 {
		t.Errorf("no options become %v", got)
	}
	if got := d.FillOptions(&v1.RunOptions{PickupTimeout: durationpb.New(2 * time.Second)}); got.GetPickupTimeout().AsDuration() != 2*time.Second || len(got.GetPickupTimeouts()) > 0 {
		t.Errorf("the pick-up time-out of the options becomes %v", got)
	}
	leases := RunDefaults{MaxLease: time.Minute}
	if got := leases.FillOptions(nil); got.GetMaxLease().AsDuration() != time.Minute {
		t.Errorf("no options become %v, without the longest lease", got)
	}
	if got := leases.FillOptions(given); got.GetMaxLease() != nil {
		t.Errorf("a heartbeat time-out that is set grows: %v", got)
	}
	for _, bad := range []RunDefaults{{Timeout: -1}, {FailurePolicy: "stop"}, {PickupTimeout: time.Millisecond}, {MaxParallel: -1}, {SuspicionLimit: -1}, {PickupTimeouts: map[string]time.Duration{"vps": 1}}, {PickupTimeouts: map[string]time.Duration{"approval": time.Minute}}, {HeartbeatTimeout: time.Second}, {HeartbeatTimeout: 2 * time.Hour}, {MaxLease: time.Second}, {MaxLease: 2 * time.Hour}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
