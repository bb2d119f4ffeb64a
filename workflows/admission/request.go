package admission

// NoGroup is the Group of a request that is not an instance of a fanned-out task.
const NoGroup = -1

// Request is a task or an instance that could start.
type Request struct {
	// Task is the number of its record in the core. Group is the number of the task that it is an instance of, or NoGroup.
	Task, Group int
	// Priority is its priority; higher goes first.
	Priority int32
	// Concurrency is the most units of the group in flight; 0 means no limit. The newest request of a group sets it for all.
	Concurrency int
	// Batch describes how many instances form a unit. It has no meaning without a group.
	Batch Batch
	// Lock is the lock that the unit must hold while it runs.
	Lock Lock
	// Free is set if the unit does not count for maxParallel, such as one that only waits for a person.
	Free bool
	// Child is set if the unit becomes a child workflow of the run. The number of open ones is limited.
	Child bool
}

// Batch describes how many instances of a fanned-out task form a unit.
type Batch struct {
	// Size is the most instances in a unit; with 0 or 1 each instance is a unit.
	Size int
	// Auto makes a unit of about a second of work, whatever Size is.
	Auto bool
	// Whole makes a unit only of Size instances, not of fewer.
	Whole bool
	// Prefetch is the most units of an automatic batch that may be without a node, so that later units are formed with what the
	// first ones have shown; 0 means 8.
	Prefetch int
}

// Lock is a mutex or a semaphore.
type Lock struct {
	// Name is the name of the lock, or "" if none is needed.
	Name string
	// Limit is how many units may hold the lock at once, over all runs; at least 1.
	Limit int
}

// Unit is a set of tasks that continue together.
type Unit struct {
	// Lead represents the unit. It is the first of Members.
	Lead int
	// Members holds the numbers of the unit's tasks: one, unless it is a batch.
	Members []int
	// Lock is the lock that the unit must hold.
	Lock Lock
}

// entry is a waiting request.
type entry struct {
	Request
	lane *lane
	age  uint64 // increases from request to request
	rank int    // in the heap of its lane; -1 while it is held
}

func (e *entry) before(o *entry) bool {
	if e.Priority != o.Priority {
		return e.Priority > o.Priority
	}
	return e.age < o.age
}

func (e *entry) at() *int { return &e.rank }
