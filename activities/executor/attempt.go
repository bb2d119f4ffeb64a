package executor

import (
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// Attempt is one execution of a task on this node.
type Attempt struct {
	// ID is unique to the dispatch across all nodes: "<run>@<chain>/<task>/c<claim>". Everything that the attempt leaves on the
	// node is marked with it.
	ID       string
	Identity Identity
	// Spec is the task's spec; its contents depend on the task type.
	Spec *structpb.Struct
	// Env holds all environment variables that are added to those of the node.
	Env     map[string]string
	Secrets Secrets
	Dirs    Dirs
	Limits  Limits
	Binding Binding
	Streams
	Reports
	Ending
	// Journal keeps the state from which a later attempt of the task continues, or is nil if nothing is kept. Only agent
	// executors use it.
	Journal Journal
	// Suspended reports that a reattached attempt was paused by a user. An attempt that stands still because a worker ended while
	// capturing it is resumed instead.
	Suspended bool
	// Remote is for remote executors only.
	Remote Remote
}

// Secrets tells the secrets of an attempt apart from the rest of its environment.
type Secrets struct {
	// Env maps the variables in Attempt.Env that hold secrets to where their values come from, such as "env:API_KEY".
	Env map[string]string
	// Mask replaces the values of secrets in a text, or is nil if there are none. The caller already masks what is written to
	// Stdout, Stderr, Notify and Journal.
	Mask func(text string) string
}

// Dirs are the directories of an attempt. Each is "" if the attempt has none.
type Dirs struct {
	// Workspace is the attempt's private directory. It holds the files named by the SWITCHYARD_* variables in Env. Temp is the
	// directory for temporary files, in Workspace or in another directory that only the worker can enter. Shared is shared by all
	// nodes. Relative working directories are resolved against Base. Files is a directory in Workspace, or one that outlives
	// the attempt, in which a task with files starts, unless it has another working directory; it is the Base of such a task.
	Workspace, Temp, Shared, Base, Files string
}

// Private returns the directories that belong to the attempt alone. None of them lies inside another.
func (d Dirs) Private() []string {
	var dirs []string
	if d.Workspace != "" {
		dirs = append(dirs, d.Workspace)
	}
	if d.Temp != "" && (d.Workspace == "" || !strings.HasPrefix(d.Temp, d.Workspace+"/")) {
		dirs = append(dirs, d.Temp)
	}
	return dirs
}

// Limits bounds the resources of the machine that an attempt may use.
type Limits struct {
	// Cores may be a fraction; 0 means no limit.
	Cores float64
	// Memory is in bytes; 0 means no limit.
	Memory int64
	// Processes bounds processes and threads; 0 means no limit.
	Processes int64
}

// Binding binds an attempt to parts of the machine.
type Binding struct {
	// GPUs name the GPUs that the attempt gets: the index of a GPU, or the UUID of a MIG device. An empty non-nil slice hides all
	// GPUs from it. With nil the attempt sees every GPU of the machine.
	GPUs []string
	// GPUPart is what the attempt gets of its one GPU, or nil if its GPUs are whole.
	GPUPart *v1.GpuPart
	// NUMANode is the NUMA node that the attempt is bound to, or nil. With NUMAOptional, the attempt runs unbound if it cannot be
	// bound.
	NUMANode     *int32
	NUMAOptional bool
}

// Streams are the standard streams of an attempt's program.
type Streams struct {
	// Stdin is the input of the program, or nil for /dev/null. Run does not close it. Only the shell executor uses it.
	Stdin *os.File
	// Stdout and Stderr receive the output of the program; nil discards it. The executor writes to each from one goroutine at a
	// time, but to both concurrently, and never after Run has returned. A slow writer slows the program down. After a write error
	// the program continues, and Run returns the error with the result.
	Stdout, Stderr io.Writer
	// Held returns what a later worker needs to continue the writers where they are, for Leftover.Held. A Leaver calls it when it
	// leaves the attempt, after the last write. It may be nil.
	Held func() ([]byte, error)
}

// Reports are what an executor reports to people while an attempt runs.
type Reports struct {
	// Notify receives messages of the system for readers of the attempt's log, one line a call. It may be called before spawned.
	// If it is nil, the messages are dropped.
	Notify func(line string)
	// Located reports what runs the attempt, by the names that other tools use, so that users can find it. Executors call it when
	// the program starts, and again when they learn more. It is quick, and may be nil.
	Located func(w *v1.Workload)
	// Waits reports what the attempt is waiting for, or "" when it no longer waits. Only remote executors use it.
	Waits func(text string)
}

// Locate reports what runs the attempt, if anything listens.
func (r *Reports) Locate(w *v1.Workload) {
	if r.Located != nil {
		r.Located(w)
	}
}

// Ending bounds how long an attempt may run, and how long it may take to end.
type Ending struct {
	// Signal names the signal that asks the program to end, such as "SIGINT". "" means SIGTERM, or the image's own signal for a
	// program that is the first process of its container.
	Signal string
	// Grace is the time between that signal and SIGKILL.
	Grace time.Duration
	// EndGrace ends the grace period early when it is closed. It may be nil.
	EndGrace <-chan struct{}
	// Lease bounds the attempt, or is nil if it is unbounded.
	Lease *Lease
}

// AwaitKill waits for the end of the grace period or of the lease, whichever comes first. The grace period begins
// with the call and may be ended early; the lease may be renewed meanwhile. AwaitKill returns false if done is closed
// first.
func (e Ending) AwaitKill(done <-chan struct{}) bool {
	grace := time.NewTimer(e.Grace)
	defer grace.Stop()
	for !e.Lease.Over() {
		var over <-chan time.Time
		if e.Lease != nil {
			over = time.After(min(e.Lease.KillAt().Sub(Now()), clockStep))
		}
		select {
		case <-done:
			return false
		case <-grace.C:
			return true
		case <-e.EndGrace:
			return true
		case <-over:
		}
	}
	return true
}

// clockStep bounds how long a single timer is trusted: timers stand still while the machine sleeps.
const clockStep = time.Second

// Remote is what only a remote executor needs to know of an attempt.
type Remote struct {
	// Continues reports that an earlier dispatch has already started the attempt.
	Continues bool
	// LogPosition is the last position passed to MarkLog that the log has recorded, or "". The executor starts
	// reading its log source there, and Stdout skips what the log already has from there on.
	LogPosition string
	// MarkLog records the position in the log source of what is written to Stdout next. The goroutine that writes to Stdout calls
	// it, between two writes.
	MarkLog func(position string)
	// Timeout is the longest the attempt may take; 0 means no limit. The caller ends ctx when it expires.
	Timeout time.Duration
	// Resources are the resources that the task requests, or nil.
	Resources *v1.Resources
}
