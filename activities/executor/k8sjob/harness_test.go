package k8sjob

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/client-go/kubernetes"

	"switchyard/activities/executor"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// bench is an executor with a namespace of a cluster, which is real or fake.
type bench struct {
	*testing.T
	*Executor
	client    kubernetes.Interface
	namespace string
	// open opens the clusters of further executors.
	open func() Clusters
}

// patience bounds the wait for a condition and for the end of an attempt. A Job takes seconds on a busy machine.
const patience = 4 * time.Minute

// serial numbers objects of this process.
var serial atomic.Int64

// another returns a bench with another executor, as on another node.
func (b *bench) another(o Options) *bench {
	b.Helper()
	o.Clusters = b.open()
	e := New(o)
	b.Cleanup(func() { _ = e.Close() })
	return &bench{T: b.T, Executor: e, client: b.client, namespace: b.namespace, open: b.open}
}

// running is an attempt in progress.
type running struct {
	b      *bench
	a      executor.Attempt
	out    *testneeds.Output
	stop   context.CancelCauseFunc
	spawns chan struct{}
	done   chan struct{}
	result executor.Result
	err    error

	mu      sync.Mutex
	waits   string
	marks   string
	notices []string
	located []*v1.Workload
}

var errCancelled = errors.New("cancelled")

// attempt returns an attempt of a task with a spec, with defaults for the cluster, its namespace and the image.
func (b *bench) attempt(task string, spec map[string]any) executor.Attempt {
	b.Helper()
	all := map[string]any{"cluster": "test", "namespace": b.namespace, "image": "busybox:local", "command": "true"}
	for key, value := range spec {
		all[key] = value
	}
	fields, err := structpb.NewStruct(all)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	input := filepath.Join(dir, "input.json")
	if err := os.WriteFile(input, []byte(`{"n":1}`+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	id := executor.Identity{Run: b.namespace, Task: task, Node: "n1", Chain: "c", Index: -1, Claim: 1}
	return executor.Attempt{
		ID: b.namespace + "/" + task + "/c1", Identity: id, Spec: fields, Ending: executor.Ending{Grace: time.Second},
		Env: map[string]string{"SWITCHYARD_INPUT": input, "SWITCHYARD_OUTPUT": filepath.Join(dir, "output"), "SWITCHYARD_CONTEXT_UPDATE": filepath.Join(dir, "context"), "GREETING": "hello"},
	}
}

// start runs an attempt in the background until the test ends.
func (b *bench) start(a executor.Attempt) *running {
	b.Helper()
	ctx, stop := context.WithCancelCause(context.Background())
	r := &running{b: b, a: a, out: &testneeds.Output{}, stop: stop, spawns: make(chan struct{}), done: make(chan struct{})}
	r.a.Stdout = r.out
	r.a.Waits = func(text string) { r.mu.Lock(); defer r.mu.Unlock(); r.waits = text }
	r.a.Located = func(w *v1.Workload) { r.mu.Lock(); defer r.mu.Unlock(); r.located = append(r.located, w) }
	r.a.Remote.MarkLog = func(at string) { r.mu.Lock(); defer r.mu.Unlock(); r.marks = at }
	r.a.Notify = func(line string) { r.mu.Lock(); defer r.mu.Unlock(); r.notices = append(r.notices, line) }
	go func() {
		defer close(r.done)
		r.result, r.err = b.Executor.Run(ctx, r.a, sync.OnceFunc(func() { close(r.spawns) }))
	}()
	b.Cleanup(func() { stop(errCancelled); <-r.done })
	return r
}

// end waits for the end of an attempt, which must not be an error, and returns its result.
func (r *running) end() executor.Result {
	r.b.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		r.b.Fatalf("%s has not ended; it waits for %q, and said %q", r.a.ID, r.waitingFor(), r.notices)
	}
	if r.err != nil {
		r.b.Fatalf("%s: %v", r.a.ID, r.err)
	}
	return r.result
}

// waitingFor returns what the attempt waits for.
func (r *running) waitingFor() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waits
}

// jobs returns the Jobs of the namespace.
func (b *bench) jobs() []batchv1.Job {
	b.Helper()
	list, err := b.client.BatchV1().Jobs(b.namespace).List(context.Background(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		b.Fatal(err)
	}
	return list.Items
}

// pods returns the pods of the namespace.
func (b *bench) pods() []corev1.Pod {
	b.Helper()
	list, err := b.client.CoreV1().Pods(b.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return list.Items
}

// runs waits until the only pod of the namespace runs, and returns it.
func (b *bench) runs() corev1.Pod {
	b.Helper()
	var pod corev1.Pod
	testneeds.Await(b, "the pod runs", func() bool {
		all := b.pods()
		if len(all) != 1 || all[0].Status.Phase != corev1.PodRunning {
			return false
		}
		pod = all[0]
		return true
	})
	return pod
}

// checkFailure checks the reason and the text of an attempt's failure.
func (r *running) checkFailure(reason, text string) {
	r.b.Helper()
	result := r.end()
	if result.Failure == nil || result.Failure.Reason != reason || !strings.Contains(result.Failure.Err.Error(), text) {
		r.b.Errorf("the result is %+v, failure %+v; want reason %s with %q", result, result.Failure, reason, text)
	}
}

// checkEmpty checks that the namespace has no Jobs and no pods.
func (b *bench) checkEmpty() {
	b.Helper()
	if jobs, pods := b.jobs(), b.pods(); len(jobs)+len(pods) > 0 {
		b.Errorf("%d Jobs and %d pods are left", len(jobs), len(pods))
	}
}
