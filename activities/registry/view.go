package registry

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// View returns an entry in the form that people see, with its snapshot. leader is the newest
// heartbeat of the leader, or nil if unknown. store is the identity of the
// fleet's store, or "" if unknown.
func View(e *Entry, now time.Time, leader *historyv1.LeaderHeartbeat, store string) *v1.Node {
	r, s := e.Record, e.Known()
	heard := e.BeatAt
	if heard.IsZero() {
		heard = r.GetRegisteredAt().AsTime()
	}
	n := &v1.Node{
		Name:            r.GetName(),
		Labels:          s.GetLabels(),
		Capabilities:    s.GetCapabilities(),
		Executors:       s.GetExecutors(),
		Running:         int32(v1.SlotsTaken(s)),
		MaxParallel:     s.GetMaxParallel(),
		RegisteredAt:    r.GetRegisteredAt(),
		StateSince:      r.GetStateSince(),
		Machine:         s.GetMachine(),
		Incarnation:     r.GetRegistration().GetIncarnation(),
		DrainDeadline:   r.GetDrain().GetDeadline(),
		Drained:         r.GetDrained(),
		Snapshot:        s,
		RestartingUntil: r.GetRestartingUntil(),
		SetTerms:        setTerms(r.GetTerms()),
	}
	n.State, n.Reason = e.State(now.Sub(heard), store)
	n.Suspicions = leader.GetSuspicions()[r.GetName()]
	if benched := leader.GetBenched()[r.GetName()]; benched.AsTime().After(now) {
		n.BenchedUntil = benched
	}
	if n.State == v1.NodeStale && now.Sub(heard) >= e.StaleAfter() {
		n.StateSince = timestamppb.New(heard.Add(e.StaleAfter()))
	}
	if !e.BeatAt.IsZero() {
		n.LastBeatAt = timestamppb.New(e.BeatAt)
	} else if (n.State == v1.NodeOffline || n.State == v1.NodeRestarting) && r.GetRegisteredAt() != nil {
		n.LastBeatAt = timestamppb.New(e.EndedAt())
	}
	n.Cores, n.MemoryMb, n.DiskGb, n.Gpus = amounts(s)
	if n.State == v1.NodeRestarting { // the figures are those of the registration
		n.Running, n.Snapshot = r.GetKept(), proto.CloneOf(s)
		if n.Snapshot != nil {
			n.Snapshot.Running = nil
		}
	}
	if n.State == v1.NodeOffline {
		n.Running = 0
		for _, a := range []*v1.NodeAmount{n.Cores, n.MemoryMb, n.DiskGb, n.Gpus} {
			a.Free = 0
		}
	}
	return n
}

// setTerms returns the terms that were set at run time, or nil if all have been cleared.
func setTerms(t *v1.NodeTerms) *v1.NodeTerms {
	if proto.Size(t) == 0 {
		return nil
	}
	return t
}

// amounts returns the totals of a node and what is free of each.
func amounts(s *v1.NodeSnapshot) (cores, memory, disk, gpus *v1.NodeAmount) {
	amount := func(total, free float64) *v1.NodeAmount {
		return &v1.NodeAmount{Total: total, Free: min(max(free, 0), total)}
	}
	free := v1.FreeGPUs(s.GetGpus(), s.GetRunning())
	if s.GetGaming() {
		free = 0
	}
	return amount(float64(s.GetCpu().GetCores()), float64(s.GetCpu().GetCores())-s.GetReservedCores()),
		amount(s.GetMemory().GetTotalMb(), min(s.GetMemory().GetAvailableMb(), s.GetMemory().GetTotalMb()-s.GetReservedMemoryMb())),
		amount(s.GetDisk().GetTotalGb(), s.GetDisk().GetAvailableGb()),
		amount(float64(len(s.GetGpus())), free)
}
