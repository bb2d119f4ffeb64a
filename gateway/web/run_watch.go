package web

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// drawInterval is the minimum interval between two drawings of a run.
	drawInterval = 250 * time.Millisecond
	// reopenInterval is how often an ended run is read again, because it may be retried.
	reopenInterval = 2 * time.Second
)

// runWatch follows a run through a watch stream and keeps its current state. Its own goroutine reads the stream.
type runWatch struct {
	services services
	id       string
	cancel   context.CancelFunc
	done     chan struct{} // closed when the goroutine has ended
	changed  chan struct{} // holds a token when there is a change

	mu        sync.Mutex
	run       *v1.Run // without tasks; nil until the first message
	tasks     map[string]*v1.Task
	instances map[string]map[int32]*v1.Instance
	total     int
	err       error // why the watch has ended for good
}

// watchRun starts to follow a run in the name of the caller of ctx. close stops it.
func watchRun(ctx context.Context, s services, id string) *runWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &runWatch{
		services: s, id: id, cancel: cancel, done: make(chan struct{}), changed: make(chan struct{}, 1),
		tasks: map[string]*v1.Task{}, instances: map[string]map[int32]*v1.Instance{},
	}
	go func() {
		defer close(w.done)
		w.follow(ctx)
	}()
	return w
}

// close stops the watch and waits for its goroutine.
func (w *runWatch) close() {
	w.cancel()
	<-w.done
}

// follow reads streams until ctx is cancelled or the run is unreadable.
func (w *runWatch) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.readStream(ctx)
		switch {
		case err == nil:
			err = w.awaitReopening(ctx)
		case isTransient(err):
			err = sleep(ctx, retryInterval)
		}
		if err != nil {
			w.fail(err)
			return
		}
	}
}

// readStream applies the messages of a stream until it ends. It returns nil if the run has ended.
func (w *runWatch) readStream(ctx context.Context) error {
	stream, err := w.services.runs.WatchRun(ctx, connect.NewRequest(&v1.WatchRunRequest{Id: w.id}))
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	for stream.Receive() {
		if m := stream.Msg(); m.GetRun() != nil {
			w.apply(m)
		}
	}
	if err := stream.Err(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// awaitReopening returns nil once an ended run has been reopened.
func (w *runWatch) awaitReopening(ctx context.Context) error {
	for {
		if err := sleep(ctx, reopenInterval); err != nil {
			return err
		}
		res, err := w.services.runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: w.id, Brief: true, PageSize: 1}))
		switch {
		case err != nil && !isTransient(err):
			return err
		case err == nil && res.Msg.GetRun().GetGeneration() != w.generation():
			return nil
		}
	}
}

func (w *runWatch) generation() int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run.GetGeneration()
}

// apply merges a message into the state. Messages hold the changed tasks and the changed instances of tasks.
func (w *runWatch) apply(m *v1.WatchRunResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	run := m.GetRun()
	if run.GetGeneration() != w.run.GetGeneration() {
		clear(w.instances)
	}
	for name, task := range run.GetTasks() {
		w.tasks[name] = task
		if task.Count == nil {
			delete(w.instances, name)
			continue
		}
		if w.instances[name] == nil {
			w.instances[name] = map[int32]*v1.Instance{}
		}
		for _, i := range task.GetInstances() {
			w.instances[name][i.GetIndex()] = i
		}
		task.Instances = nil
	}
	run.Tasks = nil
	w.run, w.total = run, max(int(m.GetTaskCount()), len(w.tasks))
	w.signal()
}

func (w *runWatch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.signal()
}

func (w *runWatch) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// runState is a snapshot of a run. It must not be modified.
type runState struct {
	run       *v1.Run // without tasks
	tasks     map[string]*v1.Task
	instances map[string][]*v1.Instance // by index; nil if unknown
	total     int                       // number of tasks, including unknown ones
}

// state returns a snapshot of the run, and the error that ended the watch. The run is nil until the first message.
func (w *runWatch) state() (runState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := runState{run: w.run, tasks: maps.Clone(w.tasks), instances: map[string][]*v1.Instance{}, total: w.total}
	for name, known := range w.instances {
		all := make([]*v1.Instance, w.tasks[name].GetCount())
		for i, instance := range known {
			if int(i) < len(all) {
				all[i] = instance
			}
		}
		s.instances[name] = all
	}
	return s, w.err
}
