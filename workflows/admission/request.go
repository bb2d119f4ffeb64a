package admission

// NoGroup is the Group of a request that is no instance of a fanned-out task.
const NoGroup = -1

// Request is a task or an instance that could start.
type Request struct {
	// Task is the number of its record in the core, Group that of the task that it is an instance of; NoGroup: none.
	Task, Group int
	// Priority; higher goes first.
	Priority int32
	// Concurrency is the most units of the group under way; 0: no limit. The newest request of a group says it for all.
	Concurrency int
	// Batch says how many instances make a unit; of no meaning without a group.
	Batch Batch
	// Lock is what the unit must hold while it runs.
	Lock Lock
	// Free says that it takes no place of maxParallel, as what only waits for a person.
	Free bool
	// Child says that it becomes a child workflow of the run, of which a bounded number is open at once.
	Child bool
}

// Batch is how many instances of a fanned-out task continue together.
type Batch struct {
	// Size is the most in a unit; 0 and 1: each goes by itself.
	Size int
	// Auto makes a unit about a second of work, whatever Size is.
	Auto bool
	// Prefetch is the most units of an automatic batch that may be without a node, so that those which
	// come later are formed with what the first have taught; 0: 8.
	Prefetch int
}

// Lock is a mutex or a semaphore.
type Lock struct {
	// Name of the lock; empty: none is needed.
	Name string
	// Limit is how many may hold it at once, over all runs; at least 1.
	Limit int
}

// Unit is what continues together.
type Unit struct {
	// Lead stands for the unit: the first of Members.
	Lead int
	// Members are the tasks of the unit by number; one unless it is a batch.
	Members []int
	// Lock is what it must hold.
	Lock Lock
}

// entry is a request that waits.
type entry struct {
	Request
	lane *lane
	age  uint64 // grows from request to request
	rank int    // in the heap of its lane; -1: it is held
}

func (e *entry) before(o *entry) bool {
	if e.Priority != o.Priority {
		return e.Priority > o.Priority
	}
	return e.age < o.age
}

func (e *entry) at() *int { return &e.rank }
