package jobwatch

import (
	"context"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// idle is how long an unused watch is kept.
const idle = time.Minute

// quietTrouble is how long a watch may be in trouble before its followers learn of it.
const quietTrouble = 3 * time.Second

// Set holds the watches of a cluster. It is safe for concurrent use.
type Set struct {
	client   kubernetes.Interface
	selector string

	mu      sync.Mutex
	watches map[string]*Watch // by namespace
}

// NewSet returns an empty set of watches for the Jobs and pods that match a label selector.
func NewSet(client kubernetes.Interface, selector string) *Set {
	return &Set{client: client, selector: selector, watches: map[string]*Watch{}}
}

// Use returns the watch of a namespace. The watch begins with its first use and ends some time after its last. The
// caller must call release; further calls are no-ops.
func (s *Set) Use(namespace string) (w *Watch, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w = s.watches[namespace]
	if w == nil {
		w = newWatch(s.client, namespace, s.selector)
		s.watches[namespace] = w
	}
	w.users++
	w.usedAt = time.Now()
	return w, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.users--
		w.usedAt = time.Now()
		if w.users == 0 {
			time.AfterFunc(idle, func() { s.drop(namespace, w) })
		}
	})
}

// drop ends a watch that has been unused for long enough.
func (s *Set) drop(namespace string, w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.users > 0 || time.Since(w.usedAt) < idle || s.watches[namespace] != w {
		return
	}
	delete(s.watches, namespace)
	w.stop()
}

// Namespaces returns the watched namespaces.
func (s *Set) Namespaces() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.watches {
		names = append(names, name)
	}
	return names
}

// Close ends all watches. No watch may be used after Close.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, w := range s.watches {
		delete(s.watches, name)
		w.stop()
	}
}

// Watch holds the Jobs of a namespace and their pods. Callers must not modify the objects that it returns. It is safe
// for concurrent use.
type Watch struct {
	client     kubernetes.Interface
	namespace  string
	events     *eventList
	jobs, pods cache.SharedIndexInformer
	cancel     context.CancelFunc

	// The mutex of the set guards these fields.
	users  int
	usedAt time.Time

	mu        sync.Mutex
	followers map[string]map[*Follower]struct{} // by Job
	trouble   error                             // the latest error of a list or a watch, or nil after a success
	since     time.Time                         // when the trouble began
}

// Snapshot is the known state of a Job.
type Snapshot struct {
	// Job is nil if the watch shows no such Job.
	Job *batchv1.Job
	// Pods are the pods of the Job, newest first.
	Pods []*corev1.Pod
	// Removed is the last state of the pod of the Job that was removed last, or nil if the follower has seen no removal.
	Removed *corev1.Pod
	// Synced reports whether the watch has received a complete list.
	Synced bool
	// Trouble is why the watch has received nothing for a while, or nil.
	Trouble error
}

// podsOfJob is the index of pods by Job.
const podsOfJob = "job"

func newWatch(client kubernetes.Interface, namespace, selector string) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{client: client, namespace: namespace, events: newEventList(), cancel: cancel, followers: map[string]map[*Follower]struct{}{}}
	source := func(l *cache.ListWatch) cache.ListerWatcher {
		return cache.ToListWatcherWithWatchListSemantics(l, client)
	}
	w.jobs = cache.NewSharedIndexInformer(source(patient(w, client.BatchV1().Jobs(namespace), selector)), &batchv1.Job{}, 0, nil)
	w.pods = cache.NewSharedIndexInformer(source(patient(w, client.CoreV1().Pods(namespace), selector)), &corev1.Pod{}, 0, cache.Indexers{
		podsOfJob: func(object any) ([]string, error) { return []string{jobOfPod(object)}, nil },
	})
	for _, informer := range []cache.SharedIndexInformer{w.jobs, w.pods} { // both calls fail only on a started informer
		_ = informer.SetTransform(withoutManagedFields)
		_ = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { w.setTrouble(err) })
	}
	w.listen(w.jobs, func(object any) string {
		if m, ok := object.(metav1.Object); ok {
			return m.GetName()
		}
		return ""
	})
	w.listen(w.pods, jobOfPod)
	_, _ = w.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: w.recordRemoval}) // fails only on a stopped informer
	for _, informer := range []cache.SharedIndexInformer{w.jobs, w.pods} {
		go informer.RunWithContext(ctx)
	}
	return w
}

// stop ends the watch in the background.
func (w *Watch) stop() { w.cancel() }

// setTrouble records the error of a call, or nil for a success.
func (w *Watch) setTrouble(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble == nil {
		w.since = time.Now()
	}
	w.trouble = err
}

// withoutManagedFields drops the managed fields, which are large and never read.
func withoutManagedFields(object any) (any, error) {
	if m, ok := object.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return object, nil
}

func jobOfPod(object any) string {
	if pod, ok := object.(*corev1.Pod); ok {
		return pod.Labels[batchv1.JobNameLabel]
	}
	return ""
}

// listen makes changes of an object wake the followers of the Job that it belongs to.
func (w *Watch) listen(informer cache.SharedIndexInformer, jobOf func(any) string) {
	wake := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		job := jobOf(object)
		w.mu.Lock()
		defer w.mu.Unlock()
		for f := range w.followers[job] {
			f.wake()
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only on a stopped informer
		AddFunc: wake, UpdateFunc: func(_, now any) { wake(now) }, DeleteFunc: wake,
	})
}

// recordRemoval records the last state of a removed pod for the followers of its Job.
func (w *Watch) recordRemoval(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for f := range w.followers[jobOfPod(pod)] {
		f.removed = pod
		f.wake()
	}
}

// Follower observes changes to one Job and its pods.
type Follower struct {
	// News holds a value if something may have changed since it was last read.
	News  <-chan struct{}
	news  chan struct{}
	watch *Watch
	job   string
	// removed is Snapshot.Removed. The mutex of the watch guards it.
	removed *corev1.Pod
}

// Follow returns a follower of the Job with a name. The caller must close it.
func (w *Watch) Follow(job string) *Follower {
	news := make(chan struct{}, 1)
	f := &Follower{News: news, news: news, watch: w, job: job}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.followers[job] == nil {
		w.followers[job] = map[*Follower]struct{}{}
	}
	w.followers[job][f] = struct{}{}
	f.wake()
	return f
}

func (f *Follower) wake() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// Close ends the follower.
func (f *Follower) Close() {
	f.watch.mu.Lock()
	defer f.watch.mu.Unlock()
	delete(f.watch.followers[f.job], f)
	if len(f.watch.followers[f.job]) == 0 {
		delete(f.watch.followers, f.job)
	}
}

// Get returns the current snapshot of the Job.
func (f *Follower) Get() Snapshot {
	w := f.watch
	s := Snapshot{Synced: w.jobs.HasSynced() && w.pods.HasSynced()}
	w.mu.Lock()
	if time.Since(w.since) > quietTrouble {
		s.Trouble = w.trouble
	}
	s.Removed = f.removed
	w.mu.Unlock()
	if object, found, _ := w.jobs.GetStore().GetByKey(w.namespace + "/" + f.job); found { // the error is always nil
		s.Job = object.(*batchv1.Job)
	}
	pods, _ := w.pods.GetIndexer().ByIndex(podsOfJob, f.job) // the index exists
	for _, object := range pods {
		s.Pods = append(s.Pods, object.(*corev1.Pod))
	}
	slices.SortFunc(s.Pods, func(a, b *corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return s
}
