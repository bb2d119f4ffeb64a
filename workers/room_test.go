package workers

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
)

func TestRoomTakesWhatTheTaskNeeds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		resources *v1.Resources
		need      node.Need
	}{
		"nothing said": {nil, node.Need{Cores: 1}},
		"only memory":  {&v1.Resources{MemoryMb: 10}, node.Need{Cores: 1, MemoryMB: 10}},
		"no cores":     {&v1.Resources{Cores: new(float64)}, node.Need{}},
		"cores":        {&v1.Resources{Cores: proto.Float64(2.5), MemoryMb: 7}, node.Need{Cores: 2.5, MemoryMB: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine := node.NewMachine(node.Need{Cores: 4, MemoryMB: 100})
			release, err := room{node.NewLedger(machine, 1)}.Acquire(t.Context(), &v1.RunningAttempt{RunId: "r", Task: "t"}, test.resources)
			if err != nil {
				t.Fatal(err)
			}
			if got := machine.Reserved(); got != test.need {
				t.Errorf("holds %v, want %v", got, test.need)
			}
			if release(); machine.Reserved() != (node.Need{}) {
				t.Errorf("holds %v after its release", machine.Reserved())
			}
		})
	}
}

// A snapshot names the attempts as they came, whatever is in their names.
func TestRunningNamesTheAttempts(t *testing.T) {
	t.Parallel()
	ledger := node.NewLedger(node.NewMachine(node.Need{Cores: 4, MemoryMB: 100}), 2)
	attempts := []*v1.RunningAttempt{{RunId: "a.b-c-x1", Task: "task_1-a", Claim: 12}, {RunId: "r", Task: "t", Claim: 1}}
	for _, a := range attempts {
		release, err := room{ledger}.Acquire(t.Context(), a, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	got := running(ledger)
	if len(got) != len(attempts) {
		t.Fatalf("running: %v", got)
	}
	for i, a := range attempts {
		if !proto.Equal(got[i], a) {
			t.Errorf("got %v, want %v", got[i], a)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (room{ledger}).Acquire(ctx, &v1.RunningAttempt{RunId: "r", Task: "u"}, nil); err == nil {
		t.Error("a third attempt was let in by two slots")
	}
}
