package tasklist

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"switchyard/activities/placement"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/policy"
)

// defaultCores is the number of cores of a task that requests none.
const defaultCores = 1

// demandOf returns what a task requires of a node, or nil if it needs no node.
func demandOf(task *v1.TaskDefinition) *v1.TaskDemand {
	if !v1.NeedsNode(task.GetType()) {
		return nil
	}
	c, resources := definition.Constraints(task), task.GetResources()
	target, _ := placement.ParseTarget(c.GetTargetNode()) // an invalid target was rejected with its definition
	gpus := policy.GPUsOf(resources)
	d := &v1.TaskDemand{
		Cores: defaultCores, MemoryMb: resources.GetMemoryMb(), Gpus: int32(max(gpus.Count, target.GPUs)), GpuPart: gpus.Part,
		Constraints: constraintTexts(c, target, definition.ContainerNeeds(task), definition.TaskNeeds(task)), Remote: v1.IsRemote(task.GetType()),
	}
	if model := resources.GetGpuModel(); model != "" {
		d.Constraints = append(d.Constraints, "GPU model "+model)
	}
	if memory := resources.GetGpuMemoryMb(); memory > 0 {
		d.Constraints = append(d.Constraints, fmt.Sprintf("%d MiB of a GPU", memory))
	}
	if resources != nil {
		d.NumaNode = resources.NumaNode
		if resources.Cores != nil {
			d.Cores = resources.GetCores()
		}
	}
	if target.NUMA >= 0 {
		d.NumaNode = new(int32(target.NUMA))
	}
	if c.GetRequiresGpu() {
		d.Gpus = max(d.Gpus, 1)
	}
	return d
}

// constraintTexts returns one line per constraint, except for those that are numbers in a demand.
func constraintTexts(c *v1.Constraints, target placement.Target, container *historyv1.ContainerNeeds, needs *historyv1.TaskNeeds) []string {
	var texts []string
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	if target.Node != "" {
		add("node %s", target.Node)
	}
	if len(target.GPUIndices) > 0 {
		var indices []string
		for _, index := range target.GPUIndices {
			indices = append(indices, strconv.Itoa(index))
		}
		add("GPU %s", strings.Join(indices, ", "))
	}
	if nodes := c.GetAllowedNodes(); len(nodes) > 0 {
		add("node %s", strings.Join(nodes, " or "))
	}
	for _, node := range c.GetForbiddenNodes() {
		add("not node %s", node)
	}
	for _, label := range c.GetNodeLabels() {
		add("label %s", label)
	}
	if labels := c.GetAnyLabels(); len(labels) > 0 {
		add("label %s", strings.Join(labels, " or "))
	}
	if c.GetAvoidGaming() {
		add("no gaming")
	}
	for _, word := range c.GetTolerates() {
		add("tolerates %s", word)
	}
	for _, kind := range c.GetRequiresExecutors() {
		add("runs %s tasks", kind)
	}
	for _, key := range slices.Sorted(maps.Keys(c.GetRequiresCapabilities())) {
		add("capability %s=%s", key, c.GetRequiresCapabilities()[key])
	}
	if n := c.GetMinMemoryMb(); n > 0 {
		add("%d MiB available", n)
	}
	if n := c.GetMinDiskGb(); n > 0 {
		add("%s GiB of disk free", strconv.FormatFloat(n, 'f', -1, 64))
	}
	if n := c.GetMaxParallelPerNode(); n > 0 {
		add("at most %d of its run on a node", n)
	}
	texts = append(texts, containerTexts(container)...)
	return append(texts, needTexts(needs)...)
}

// containerTexts returns one line for each permission that a container needs on its node.
func containerTexts(needs *historyv1.ContainerNeeds) []string {
	var texts []string
	if needs.GetPrivileged() {
		texts = append(texts, "privileged containers")
	}
	if needs.GetHostNetwork() {
		texts = append(texts, "network of the host")
	}
	for _, mount := range needs.GetMounts() {
		texts = append(texts, "mount of "+mount.GetPath())
	}
	for _, capability := range needs.GetCapabilities() {
		texts = append(texts, "capability "+capability+" in containers")
	}
	return texts
}

// needTexts returns one line for each other thing that a task needs its node to offer.
func needTexts(needs *historyv1.TaskNeeds) []string {
	var texts []string
	add := func(label string, values ...string) {
		for _, value := range values {
			if value != "" {
				texts = append(texts, label+" "+value)
			}
		}
	}
	add("image", needs.GetVmImage())
	add("registry credentials", needs.GetRegistryAuth())
	add("network", needs.GetNetwork())
	add("agent tool", needs.GetAgentTools()...)
	add("key for", needs.GetAgentKey())
	add("agent", needs.GetAgentProgram())
	add("interpreter", needs.GetInterpreters()...)
	add("secret", needs.GetSecrets()...)
	if needs.GetStop() {
		texts = append(texts, "stop signals of tasks")
	}
	return texts
}
