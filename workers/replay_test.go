package workers_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestHistoriesOfTheFleetReplay replays the histories of the registry entries of two nodes, one that drains, leaves, goes
// silent, returns and is removed, and one that restarts, and the history of the election.
func TestHistoriesOfTheFleetReplay(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	c := y.Nodes(t, nil)
	reg, name := registry.New(c.Conn), c.Name("n")
	entry := &workertest.Handle{Nodes: c, ID: names.NodeWorkflowID(name)}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	n := c.Start("n")
	must(reg.Drain(t.Context(), name, &historyv1.NodeDrain{Reason: "repair"}))
	workertest.Eventually(t, "nothing is left", func() bool {
		got, err := reg.Get(t.Context(), name)
		return err == nil && got.GetDrained()
	})
	must(reg.Undrain(t.Context(), name))
	must(reg.Drain(t.Context(), name, &historyv1.NodeDrain{Deadline: timestamppb.Now()}))
	must(reg.Undrain(t.Context(), name)) // cancels the drain, unless nothing was left to drain
	c.Do(`{name: on, tasks: {x: {type: shell, spec: {command: x}}}}`)
	n.Stop()
	c.AwaitState(name, "offline")
	must(reg.Drain(t.Context(), name, &historyv1.NodeDrain{}))
	n = c.Start("n")
	must(reg.Undrain(t.Context(), name))
	n.Stop()
	c.AwaitState(name, "offline")
	// One incarnation leaves before its first heartbeat, and another one is silent.
	must(reg.Register(t.Context(), &historyv1.NodeRegistration{Name: name, Incarnation: "brief", OfflineAfter: durationpb.New(workertest.Limit)}))
	must(nil, reg.Leave(t.Context(), name, "brief"))
	c.AwaitState(name, "offline")
	must(reg.Register(t.Context(), &historyv1.NodeRegistration{Name: name, Incarnation: "silent", OfflineAfter: durationpb.New(time.Second)}))
	c.AwaitState(name, "offline")
	must(nil, reg.Remove(t.Context(), name))
	workertest.Eventually(t, "the entry is closed", func() bool { return !entry.IsOpen() })
	workertest.Replay(t, "node", limits.Run{}, entry.History(""))

	// A worker restarts, is drained meanwhile, and comes back. Its next restart takes too long.
	name = c.Name("r")
	entry = &workertest.Handle{Nodes: c, ID: names.NodeWorkflowID(name)}
	must(reg.Register(t.Context(), &historyv1.NodeRegistration{Name: name, Incarnation: "first", Machine: "m", OfflineAfter: durationpb.New(workertest.Limit)}))
	must(nil, reg.Restart(t.Context(), name, &historyv1.NodeRestart{Incarnation: "first", Wait: durationpb.New(workertest.Limit), Kept: 2}))
	must(reg.Drain(t.Context(), name, &historyv1.NodeDrain{Reason: "repair"}))
	must(reg.Register(t.Context(), &historyv1.NodeRegistration{Name: name, Incarnation: "second", Machine: "m", OfflineAfter: durationpb.New(workertest.Limit)}))
	must(reg.Undrain(t.Context(), name))
	must(nil, reg.Restart(t.Context(), name, &historyv1.NodeRestart{Incarnation: "second", Wait: durationpb.New(time.Second), Kept: 1}))
	c.AwaitState(name, "offline")
	must(nil, reg.Remove(t.Context(), name))
	workertest.Eventually(t, "the entry is closed", func() bool { return !entry.IsOpen() })
	workertest.Replay(t, "node-restart", limits.Run{}, entry.History(""))

	election := &workertest.Handle{Nodes: c, ID: names.LeaderWorkflowID}
	workertest.Replay(t, "leader", limits.Run{}, election.History(""))
}
