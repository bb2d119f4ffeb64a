package definition

import (
	"cmp"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/policy"
)

// workspaceTimeout is how long a task waits for the node of its workspace if that is offline.
const workspaceTimeout = 5 * time.Minute

// workspace checks the folder that a task shares with others.
func (s *sight) workspace(task *v1.TaskDefinition, p *source.Path) {
	name := task.GetWorkspace()
	if name == "" {
		return
	}
	switch {
	case task.GetParallel() != nil || task.GetForeach() != nil:
		s.Fail(s.locate(p), p, "a task that fans out cannot share a folder: its instances run on many nodes", "let a task without instances use the workspace, or pass files on as artifacts")
	case task.GetCache() != nil:
		s.Fail(s.locate(p), p, "a task with a cache cannot share a folder: a result that is reused brings no files", "remove cache, or pass files on as artifacts")
	}
	for _, other := range s.graph.names {
		if first := v1.TaskNamed(s.def, other); first.GetWorkspace() == name {
			if !proto.Equal(cloneOrNew(first.GetConstraints()), cloneOrNew(task.GetConstraints())) {
				s.Fail(s.locate(p), p, "tasks "+other+" and "+s.graph.names[s.number]+" share workspace "+name+", and their constraints differ", "give all tasks of a workspace the same constraints, because they run on one node")
			}
			return
		}
	}
}

// AddNeeds adds to the request of the first task of a workspace what another of its tasks needs of the node.
func AddNeeds(req *historyv1.TaskRequest, other *v1.TaskDefinition) {
	if res := other.GetResources(); res != nil {
		most := proto.CloneOf(cmp.Or(req.Later, &v1.Resources{Cores: new(float64)}))
		*most.Cores = max(*most.Cores, res.GetCores())
		most.MemoryMb, most.Gpus = max(most.MemoryMb, res.GetMemoryMb()), max(most.Gpus, float64(policy.GPUsOf(res).Count))
		req.Later = most
	}
	more := Constraints(other)
	c := cloneOrNew(req.GetConstraints())
	c.RequiresExecutors = merge(c.GetRequiresExecutors(), more.GetRequiresExecutors())
	if other.GetType() != req.GetType() {
		c.RequiresExecutors = merge(c.RequiresExecutors, []string{other.GetType()})
	}
	if c.RequiresCapabilities == nil {
		c.RequiresCapabilities = map[string]string{}
	}
	maps.Copy(c.RequiresCapabilities, more.GetRequiresCapabilities()) //workflowcheck:ignore (into a map again)
	req.Constraints = c
	if needs := ContainerNeeds(other); needs != nil {
		req.Container = proto.CloneOf(cmp.Or(req.Container, &historyv1.ContainerNeeds{}))
		proto.Merge(req.Container, needs)
	}
	if needs := TaskNeeds(other); needs != nil {
		all := proto.CloneOf(cmp.Or(req.Needs, &historyv1.TaskNeeds{}))
		secrets, interpreters := all.GetSecrets(), all.GetInterpreters()
		proto.Merge(all, needs)
		all.Secrets, all.Interpreters = merge(secrets, needs.GetSecrets()), merge(interpreters, needs.GetInterpreters())
		req.Needs = all
	}
}

// WorkspaceTimeout returns how long a task waits for the node of its workspace. run is the limit that the run sets, or nil.
func WorkspaceTimeout(run *durationpb.Duration) *durationpb.Duration {
	if set := run.AsDuration(); set > 0 && set < workspaceTimeout {
		return run
	}
	return durationpb.New(workspaceTimeout)
}
