package switchyardv1

// InstanceTask returns an instance as a task of its own, with the type, the parents and the place of the task that fanned out.
func InstanceTask(of *Task, i *Instance) *Task {
	return &Task{
		State: i.GetState(), Reason: i.GetReason(), Type: of.GetType(), Node: i.GetNode(), Attempt: i.GetAttempt(), Error: i.GetError(),
		Result: i.GetResult(), DependsOn: of.GetDependsOn(), AssignedAt: i.GetAssignedAt(), StartedAt: i.GetStartedAt(),
		CompletedAt: i.GetCompletedAt(), ScheduledAfter: i.GetScheduledAfter(), Attempts: i.GetAttempts(), Suspicions: i.GetSuspicions(),
		CachedFrom: i.GetCachedFrom(), ChildRun: i.GetChildRun(), Held: i.GetHeld(),
		CreatedAt: i.GetCreatedAt(), QueuedAt: i.GetQueuedAt(), DeadLetteredAt: i.GetDeadLetteredAt(), Notice: i.GetNotice(),
		Workload: i.GetWorkload(), LeaseUntil: i.GetLeaseUntil(), Finally: of.GetFinally(),
	}
}
