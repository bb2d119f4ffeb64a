package workers

import (
	"log/slog"
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/store"
	"switchyard/workers/node"
	"switchyard/workflows/definition"
)

func TestNodeConfig(t *testing.T) {
	t.Parallel()
	good := NodeConfig{
		Client: &Connection{}, Store: &store.Store{}, Logger: slog.New(slog.DiscardHandler), Name: "a",
		Machine: node.NewMachine(node.Size{Cores: 6}), Executors: []executor.Executor{fake.New("shell", nil)}, ScratchDir: "x",
	}
	if c, err := good.withDefaults(); err != nil || c.MaxParallel != 6 {
		t.Errorf("max parallel %d, error %v", c.MaxParallel, err)
	}
	for name, test := range map[string]struct {
		change func(*NodeConfig)
		want   string
	}{
		"no name":     {func(c *NodeConfig) { c.Name = "" }, "node name"},
		"bad name":    {func(c *NodeConfig) { c.Name = "My Node" }, "my-node"},
		"negative":    {func(c *NodeConfig) { c.MaxParallel = -1 }, "max parallel"},
		"no executor": {func(c *NodeConfig) { c.Executors = nil }, "Executors"},
		"no store":    {func(c *NodeConfig) { c.Store = nil }, "Store"},
	} {
		c := good
		test.change(&c)
		if _, err := c.withDefaults(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
	if _, err := StartControl(t.Context(), ControlConfig{}); err == nil || !strings.Contains(err.Error(), "Client") {
		t.Errorf("a control worker without anything: %v", err)
	}
	control := ControlConfig{Client: good.Client, Store: good.Store, Logger: good.Logger, Defaults: definition.RunDefaults{Timeout: -1}}
	if _, err := StartControl(t.Context(), control); err == nil || !strings.Contains(err.Error(), "Defaults.Timeout") {
		t.Errorf("a control worker with bad defaults: %v", err)
	}
}
