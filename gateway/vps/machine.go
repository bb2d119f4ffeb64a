package vps

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// attempted is the common interface of tasks, instances and list items.
type attempted interface {
	GetState() string
	GetReason() string
	GetNode() string
	GetError() string
	GetStartedAt() *timestamppb.Timestamp
	GetCompletedAt() *timestamppb.Timestamp
}

// machine is a task of type vps or an instance of one.
type machine struct {
	run  *v1.Run // without its other tasks
	name string  // name of the task or instance
	now  attempted
}

// tasksAtOnce is the page size for finding the machine of a run.
const tasksAtOnce = 1000

// find returns the named machine of a run, or the only one if name is empty.
func (s Service) find(ctx context.Context, id, name string) (machine, error) {
	if name != "" {
		return s.findByName(ctx, id, name)
	}
	var found []string
	req := &v1.GetRunRequest{Id: id, PageSize: tasksAtOnce}
	var m machine
	for {
		res, err := s.Runs.GetRun(ctx, connect.NewRequest(req))
		if err != nil {
			return machine{}, err
		}
		page := res.Msg.GetRun()
		for _, task := range slices.Sorted(maps.Keys(page.GetTasks())) {
			if t := page.GetTasks()[task]; t.GetType() == v1.TypeVPS {
				found = append(found, task)
				m = machine{run: page, name: task, now: t}
			}
		}
		if req.PageToken = res.Msg.GetNextPageToken(); req.PageToken == "" || len(found) > 1 {
			break
		}
	}
	switch {
	case len(found) == 0:
		return machine{}, rpcerror.NotFound("run %s has no machine: none of its tasks is of type %s", id, v1.TypeVPS)
	case len(found) > 1:
		return machine{}, rpcerror.Invalid("run %s has several machines, such as %s and %s; name the task", id, found[0], found[1])
	}
	return requireSingle(m)
}

// findByName returns the machine of a run that a task or instance names.
func (s Service) findByName(ctx context.Context, id, name string) (machine, error) {
	task, _, isInstance := names.ParseInstanceName(name)
	if !isInstance {
		task = name
	}
	res, err := s.Runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: id, Tasks: []string{task}}))
	if err != nil {
		return machine{}, err
	}
	run := res.Msg.GetRun()
	if t := run.GetTasks()[task]; t != nil && t.GetType() != v1.TypeVPS {
		return machine{}, rpcerror.Invalid("task %s of run %s is of type %s, not a machine", task, id, t.GetType())
	} else if t != nil && !isInstance {
		return requireSingle(machine{run: run, name: task, now: t})
	}
	// GetRunTask answers an unknown name with similar ones.
	one, err := s.Runs.GetRunTask(ctx, connect.NewRequest(&v1.GetRunTaskRequest{Id: id, Task: name}))
	if err != nil {
		return machine{}, err
	}
	return machine{run: run, name: name, now: one.Msg.GetInstance()}, nil
}

// requireSingle returns a machine that is a whole task. It returns an error for a fanned-out task, whose instances are the
// machines.
func requireSingle(m machine) (machine, error) {
	if count := m.run.GetTasks()[m.name].GetCount(); count > 0 {
		return machine{}, rpcerror.Invalid("task %s of run %s has %d machines; name one, such as %s", m.name, m.run.GetId(), count, names.InstanceName(m.name, 0))
	}
	return m, nil
}

// describe returns a machine as people see it. def is the definition of its run, or nil if it is unknown.
func (s Service) describe(m machine, def *v1.Definition) *v1.Vps {
	task, _, isInstance := names.ParseInstanceName(m.name)
	if !isInstance {
		task = m.name
	}
	defined := v1.TaskNamed(def, task)
	text := func(field string) string { return defined.GetSpec().GetFields()[field].GetStringValue() }
	vps := &v1.Vps{
		Id: m.run.GetId(), Name: m.run.GetName(), Task: m.name, Status: statusOf(m), Reason: m.now.GetReason(), Error: m.now.GetError(),
		Node: m.now.GetNode(), Image: text("image"), VpsBackend: cmp.Or(text("backend"), v1.BackendDocker), IdleTimeout: text("idleTimeout"),
		SubmittedBy: m.run.GetSubmittedBy(), CreatedAt: m.run.GetCreatedAt(), StartedAt: m.now.GetStartedAt(), CompletedAt: m.now.GetCompletedAt(),
		Resources: defined.GetResources(), Environment: text("environment"), VmImage: text("vmImage"), VmDiskSize: text("vmDiskSize"),
	}
	if vps.GetVpsBackend() == v1.BackendQEMU && isUp(m.now) {
		vps.VmIp = v1.GuestAddress
	}
	if v1.IsRunTerminal(vps.GetStatus()) && vps.CompletedAt == nil {
		vps.CompletedAt = m.run.GetCompletedAt() // for a run that was rejected or closed from outside
	}
	if left, ok := m.now.(interface{ GetResult() *v1.TaskResult }); ok {
		vps.ContainerName = left.GetResult().GetContainer()
	}
	if held, ok := m.now.(interface{ GetNotice() string }); ok {
		vps.Notice = held.GetNotice()
	}
	s.SSH.setLogin(vps)
	return vps
}

// isUp reports whether a machine has started and, as far as is known, not ended.
func isUp(now attempted) bool {
	notice := ""
	if held, ok := now.(interface{ GetNotice() string }); ok {
		notice = held.GetNotice()
	}
	state := now.GetState()
	return state == v1.TaskRunning || state == v1.TaskPaused && now.GetNode() != "" || v1.IsTaskAway(state, notice)
}

// statusOf returns the status of a machine: the state of its task, or of its run if the run is rejected or awaits approval.
func statusOf(m machine) string {
	if state := m.run.GetState(); state == v1.RunPendingApproval || state == v1.RunRejected {
		return state
	}
	return m.now.GetState()
}

// unknownHost is the placeholder for the host of a gateway that does not know its name.
const unknownHost = "GATEWAY"

// setLogin sets the login fields of a machine.
func (d Door) setLogin(vps *v1.Vps) {
	vps.SshHost, vps.SshPort, vps.SshUser = d.Host, int32(d.Port), vps.GetTask()+"."+vps.GetId()
	if d.Port == 0 {
		vps.SshHost = ""
		vps.SshCommand = fmt.Sprintf("switchyard ssh %s %s", vps.GetId(), quote(vps.GetTask()))
		return
	}
	vps.SshCommand = fmt.Sprintf("ssh -p %d %s", d.Port, quote(vps.GetSshUser()+"@"+cmp.Or(d.Host, unknownHost)))
}

// quote quotes a word for a shell if it has brackets, which the shell would take for a pattern.
func quote(word string) string {
	if strings.ContainsAny(word, "[]") {
		return "'" + word + "'"
	}
	return word
}
