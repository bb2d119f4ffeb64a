package workers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestTermsSetAtRunTimeOutliveTheWorker sets terms of a node with flags, restarts its worker, and clears them.
func TestTermsSetAtRunTimeOutliveTheWorker(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"long": {{Block: true}}})
	reg := registry.New(c.Conn)
	name := c.Name("a")
	flags := func(cfg *workers.NodeConfig) { cfg.Terms = &v1.NodeTerms{KeptFor: []string{"gpu"}} }
	n := c.Start("a", flags)
	set := func(change *historyv1.NodeTermsChange) {
		t.Helper()
		if _, err := reg.SetTerms(t.Context(), name, change); err != nil {
			t.Fatal(err)
		}
	}
	await := func(what string, holds func(*v1.Node) bool) {
		t.Helper()
		workertest.Eventually(t, what, func() bool {
			got, err := reg.Get(t.Context(), name)
			return err == nil && got.GetState() == v1.NodeActive && got.GetSnapshot().GetSequence() > 0 && holds(got)
		})
	}
	keptFor := func(n *v1.Node) string { return strings.Join(n.GetSnapshot().GetTerms().GetKeptFor(), " ") }
	await("the terms of the flags", func(n *v1.Node) bool { return keptFor(n) == "gpu" && n.GetSetTerms() == nil })
	set(&historyv1.NodeTermsChange{Terms: &v1.NodeTerms{KeptFor: []string{"none"}}})
	await("it is kept for nothing", func(n *v1.Node) bool { return keptFor(n) == "" && n.GetSetTerms() != nil })
	h := c.Submit(c.Input(`{name: terms, tasks: {long: {type: shell, spec: {command: x}}, next: {type: shell, spec: {command: x}, dependsOn: [long]}}}`))
	c.AwaitRunning("long")
	later := time.Now().UTC().Add(3 * time.Hour)
	set(&historyv1.NodeTermsChange{Terms: &v1.NodeTerms{Hours: []string{fmt.Sprintf("%02d:00-%02d:30 UTC", later.Hour(), later.Hour())}}})
	reason := fmt.Sprintf("outside its hours (takes tasks again at %02d:00 UTC)", later.Hour())
	await("it is closed, and still kept for nothing", func(n *v1.Node) bool { return n.GetReason() == reason && keptFor(n) == "" })
	c.Fake.Release("long")
	h.AwaitTask("next", func(task *v1.Task) bool { return strings.Contains(task.GetError(), name+" is "+reason) })
	n.Stop()
	c.AwaitState(name, v1.NodeOffline)
	c.Start("a", flags)
	await("it is closed after a restart", func(n *v1.Node) bool { return n.GetReason() == reason && keptFor(n) == "" })
	set(&historyv1.NodeTermsChange{Clear: true, Terms: &v1.NodeTerms{KeptFor: []string{"label=" + c.Label}}})
	await("it is open", func(n *v1.Node) bool { return n.GetReason() == "" && keptFor(n) == "label="+c.Label })
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"long": "completed", "next": "completed"})
	set(&historyv1.NodeTermsChange{Clear: true})
	await("the flags apply again", func(n *v1.Node) bool { return keptFor(n) == "gpu" && n.GetSetTerms() == nil })
	if _, err := reg.SetTerms(t.Context(), c.Name("none"), &historyv1.NodeTermsChange{Clear: true}); !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("terms of an unknown node: %v", err)
	}
	entry := &workertest.Handle{Nodes: c, ID: names.NodeWorkflowID(name)}
	workertest.Replay(t, "node-terms", limits.Run{}, entry.History(""))
}
