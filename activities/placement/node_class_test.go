package placement

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// traitNode returns a snapshot that has each trait to exactly the extent that traitRequests ask for.
func traitNode() *v1.NodeSnapshot {
	return aNode("a", labels("l1", "l2", gamingLabel), gpusOn(0, 1), numaNodes(2, 2, 4096), func(n *v1.NodeSnapshot) {
		n.Executors, n.Gaming = []string{"shell", "docker"}, true
		n.Capabilities = map[string]string{"k1": "v1", "k2": "v2"}
		n.Withheld = map[string]string{"qemu": "no KVM", v1.WithheldQEMU: "no KVM"}
		n.Terms = &v1.NodeTerms{KeptFor: []string{"gpu", "label=l2"}}
		n.Containers = &v1.ContainerPolicy{
			Privileged: true, HostNetwork: true, Command: "run", Capabilities: []string{"NET_ADMIN"},
			Mounts: []*v1.MountRule{{Path: "/data"}, {Path: "/read", ReadOnly: true}},
		}
		n.Support = &v1.TaskSupport{
			VmImageDirs: []string{"/images"}, RegistryAuths: []string{"hub"}, Networks: []string{"lab"}, AgentTools: []string{"files"},
			AgentKeys: []string{"openai"}, AgentPrograms: []string{"claude-code"}, Secrets: []string{"env:DEPLOY_*"}, Numactl: true, Interpreters: []string{"bash"}, Stop: true, GpuParts: true,
		}
	})
}

// traitRequests returns requests that need exactly what traitNode has, or a little more.
func traitRequests() []*historyv1.TaskRequest {
	var out []*historyv1.TaskRequest
	add := func(change func(*historyv1.TaskRequest)) { out = append(out, aTask("t", withCores(0), change)) }
	con := func(change func(*v1.Constraints)) { add(constrained(change)) }
	for _, taskType := range []string{"shell", "docker", "qemu"} {
		add(func(r *historyv1.TaskRequest) { r.Type = taskType })
		con(func(c *v1.Constraints) { c.RequiresExecutors = []string{taskType} })
	}
	for _, label := range []string{"l1", "l2", "l3"} {
		con(func(c *v1.Constraints) { c.NodeLabels = []string{label} })
		con(func(c *v1.Constraints) { c.AnyLabels = []string{label} })
	}
	con(func(c *v1.Constraints) { c.AvoidGaming = true })
	for _, tolerated := range [][]string{{"gpu", "l2"}, {"gpu"}, {"l2"}} {
		con(func(c *v1.Constraints) { c.Tolerates = tolerated })
	}
	add(func(r *historyv1.TaskRequest) { r.Later = &v1.Resources{Cores: new(4.0), MemoryMb: 16, Gpus: 1} })
	for _, wanted := range []map[string]string{{"k1": "v1"}, {"k2": "v2"}, {"k3": "v3"}, {v1.QEMUCapability: "true"}} {
		con(func(c *v1.Constraints) { c.RequiresCapabilities = wanted })
	}
	for _, needs := range []*historyv1.ContainerNeeds{
		{Privileged: true}, {HostNetwork: true}, {Capabilities: []string{"NET_ADMIN"}}, {Capabilities: []string{"SYS_ADMIN"}},
		{Mounts: []*v1.MountRule{{Path: "/data/x"}}}, {Mounts: []*v1.MountRule{{Path: "/data/x", ReadOnly: true}}},
		{Mounts: []*v1.MountRule{{Path: "/read/x"}}}, {Mounts: []*v1.MountRule{{Path: "/read/x", ReadOnly: true}}},
	} {
		add(needing(needs))
	}
	for _, name := range []string{"lab", "hub", "files", "openai", "claude-code", "/images/a", "env:DEPLOY_KEY", "l3", "bash"} {
		for _, needs := range []*historyv1.TaskNeeds{
			{VmImage: name}, {RegistryAuth: name}, {Network: name}, {AgentTools: []string{name}}, {AgentKey: name}, {AgentProgram: name},
			{Secrets: []string{name}}, {Interpreters: []string{name}},
		} {
			add(offered(needs))
		}
	}
	add(offered(&historyv1.TaskNeeds{Stop: true}))
	add(offered(&historyv1.TaskNeeds{GpuParts: true}))
	for more := range int32(2) {
		add(withCores(float64(4 + more)))
		add(withMemory(8192 + more))
		con(func(c *v1.Constraints) { c.MinMemoryMb = 8192 + more })
		con(func(c *v1.Constraints) { c.MinDiskGb = float64(100 + more) })
		add(withGPUs(float64(2 + more)))
		add(withGPUMemory(1 + more))
		add(with(withGPUs(1), withGPUModel([]string{"l3", "qemu"}[more])))
		add(pinned(fmt.Sprintf("a::0,%d", 1+more)))
		add(onNUMA(1 + more))
		add(func(r *historyv1.TaskRequest) { onNUMA(1)(r); withCores(float64(2 + more))(r) })
		add(func(r *historyv1.TaskRequest) { onNUMA(0)(r); withMemory(4096 + more)(r) })
	}
	return out
}

// variant is a node that differs from another one in one field.
type variant struct {
	field string
	node  Node
}

// variantsOf returns nodes that each differ from an active node in its state or in one value of one
// field of its snapshot, for every field of the message and of the messages in it.
func variantsOf(n *v1.NodeSnapshot) []variant {
	out := []variant{{"state", Node{Snapshot: n, State: v1.NodeOffline}}}
	vary(n.ProtoReflect().Descriptor(), "", 0, func(field string, change func(protoreflect.Message)) {
		changed := proto.CloneOf(n)
		change(changed.ProtoReflect())
		out = append(out, variant{field, Node{Snapshot: changed}})
	})
	return out
}

// vary calls found for each way to change a field of a message. Lists change in an element, in an
// added and in a missing one, maps in their values, their keys and an added entry.
func vary(d protoreflect.MessageDescriptor, prefix string, depth int, found func(field string, change func(protoreflect.Message))) {
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		name := prefix + string(fd.Name())
		found(name, func(m protoreflect.Message) { m.Clear(fd) })
		switch {
		case fd.IsMap():
			found(name, func(m protoreflect.Message) {
				m.Mutable(fd).Map().Set(mapKey("k3"), otherValue(fd.MapValue(), protoreflect.Value{}, 0))
			})
			found(name, func(m protoreflect.Message) {
				for key, value := range entriesOf(m.Get(fd).Map()) {
					m.Mutable(fd).Map().Set(mapKey(key), otherValue(fd.MapValue(), value, 1))
				}
			})
			found(name, func(m protoreflect.Message) {
				for key, value := range entriesOf(m.Get(fd).Map()) {
					m.Mutable(fd).Map().Clear(mapKey(key))
					m.Mutable(fd).Map().Set(mapKey(key+"x"), value)
				}
			})
		case fd.IsList() && fd.Message() != nil:
			found(name, func(m protoreflect.Message) { m.Mutable(fd).List().AppendMutable() })
			vary(fd.Message(), name+".", depth+1, func(field string, change func(protoreflect.Message)) {
				for at := range 2 {
					found(field, func(m protoreflect.Message) {
						list := m.Mutable(fd).List()
						for list.Len() <= at {
							list.AppendMutable()
						}
						change(list.Get(at).Message())
					})
				}
			})
		case fd.IsList():
			for step := range 3 {
				found(name, func(m protoreflect.Message) {
					list := m.Mutable(fd).List()
					list.Append(otherValue(fd, protoreflect.Value{}, step))
				})
				found(name, func(m protoreflect.Message) {
					if list := m.Mutable(fd).List(); list.Len() > 0 {
						list.Set(0, otherValue(fd, list.Get(0), step))
					}
				})
			}
			found(name, func(m protoreflect.Message) {
				if list := m.Mutable(fd).List(); list.Len() > 0 {
					list.Truncate(list.Len() - 1)
				}
			})
		case fd.Message() != nil:
			if depth < 4 {
				vary(fd.Message(), name+".", depth+1, func(field string, change func(protoreflect.Message)) {
					found(field, func(m protoreflect.Message) { change(m.Mutable(fd).Message()) })
				})
			}
		default:
			for step := range 3 {
				found(name, func(m protoreflect.Message) { m.Set(fd, otherValue(fd, m.Get(fd), step)) })
			}
		}
	}
}

// entriesOf returns a copy of a map with string keys.
func entriesOf(m protoreflect.Map) map[string]protoreflect.Value {
	out := map[string]protoreflect.Value{}
	m.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		out[key.String()] = value
		return true
	})
	return out
}

func mapKey(key string) protoreflect.MapKey { return protoreflect.ValueOfString(key).MapKey() }

// otherValue returns a value of the field's kind that differs from a value, which may be invalid.
// step selects one of three.
func otherValue(fd protoreflect.FieldDescriptor, value protoreflect.Value, step int) protoreflect.Value {
	delta := []float64{1, -1, 2}[step]
	sum := func(old float64) float64 { return max(0, old+delta) } // no figure of a node is negative
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!value.IsValid() || !value.Bool())
	case protoreflect.StringKind:
		if fd.ContainingMessage().IsMapEntry() {
			return protoreflect.ValueOfString("v3")
		}
		return protoreflect.ValueOfString([]string{"l3", "qemu", "SYS_ADMIN"}[step])
	case protoreflect.Int32Kind:
		if !value.IsValid() {
			value = protoreflect.ValueOfInt32(0)
		}
		return protoreflect.ValueOfInt32(int32(sum(float64(value.Int()))))
	case protoreflect.Int64Kind:
		if !value.IsValid() {
			value = protoreflect.ValueOfInt64(0)
		}
		return protoreflect.ValueOfInt64(int64(sum(float64(value.Int()))))
	case protoreflect.DoubleKind:
		if !value.IsValid() {
			value = protoreflect.ValueOfFloat64(0)
		}
		return protoreflect.ValueOfFloat64(sum(value.Float()))
	}
	panic(fmt.Sprintf("%s: add a value for the kind %v", fd.FullName(), fd.Kind()))
}

// judgement is one answer of a trait filter.
type judgement struct {
	filter  string
	request int
}

// judge returns the node class of a node, and the reason of each trait filter against the node for
// each request, or "" if the request passes.
func judge(f *fleet, node Node, requests []*historyv1.TaskRequest) (class int, reasons map[judgement]string) {
	f.replace([]Node{node}, newClock().now())
	n := f.listed[0]
	reasons = map[judgement]string{}
	for i, req := range requests {
		s := newSpec("r", req, "")
		v := &view{spec: &s, n: n, stretch: 1}
		for _, filter := range nodeFilters() {
			reason := ""
			if !filter.fits(v) {
				p := filter.why(v)
				reason = p.verb.one + " " + p.object
			}
			reasons[judgement{filter.name, i}] = reason
		}
	}
	return n.class, reasons
}

// TestTraitFiltersTellApartOnlyNodesOfDifferentClasses changes every field of a snapshot. If the
// answer or the reason of a trait filter changes, so must the node class, because a request class
// evaluates these filters once per node class.
func TestTraitFiltersTellApartOnlyNodesOfDifferentClasses(t *testing.T) {
	requests, base := traitRequests(), Node{Snapshot: traitNode()}
	matters := map[string]bool{} // fields that change an answer
	passed, refused := map[string]bool{}, map[string]bool{}
	for _, variant := range variantsOf(base.Snapshot) {
		f := newFleet(Options{}.WithDefaults(), newAccounts(time.Hour, false))
		class, reasons := judge(f, base, requests)
		otherClass, otherReasons := judge(f, variant.node, requests)
		for j, reason := range otherReasons {
			if reason == "" {
				passed[j.filter] = true
			} else {
				refused[j.filter] = true
			}
			if reason == reasons[j] {
				continue
			}
			matters[variant.field] = true
			if class == otherClass {
				t.Errorf("%s: filter %s gives the reason %q for one node and %q for another of the same class: add the field to traits",
					variant.field, j.filter, reasons[j], reason)
			}
		}
	}
	// The test finds a forgotten trait only if its requests depend on all traits, by all filters.
	for _, field := range []string{
		"state", "labels", "executors", "capabilities", "withheld", "gaming", "terms.kept_for", "cpu.cores", "memory.total_mb", "disk.total_gb",
		"gpus", "gpus.index", "numa", "numa.index", "numa.cpus", "numa.memory_total_mb",
		"containers.command", "containers.privileged", "containers.host_network", "containers.capabilities",
		"containers.mounts.path", "containers.mounts.read_only",
	} {
		if !matters[field] {
			t.Errorf("no request depends on %s: add one to traitRequests", field)
		}
	}
	for _, filter := range nodeFilters() {
		if !passed[filter.name] || !refused[filter.name] {
			t.Errorf("filter %s passes a request: %v, refuses one: %v; add one to traitRequests", filter.name, passed[filter.name], refused[filter.name])
		}
	}
}
