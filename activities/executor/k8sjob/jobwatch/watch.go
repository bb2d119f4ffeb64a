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

// idle is how long a watch that nothing uses is kept.
const idle = time.Minute

// quietTrouble is how long a watch is in trouble before its followers are told.
const quietTrouble = 3 * time.Second

// Set has the watches of a cluster. It is safe for concurrent use.
type Set struct {
	client   kubernetes.Interface
	selector string

	mu      sync.Mutex
	watches map[string]*Watch // by namespace
}

// NewSet returns an empty set of watches of the Jobs and pods that a label selector names.
func NewSet(client kubernetes.Interface, selector string) *Set {
	return &Set{client: client, selector: selector, watches: map[string]*Watch{}}
}

// Use returns the watch of a namespace, which begins with its first use and ends some time after its last. release must be
// called once.
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

// drop ends a watch that has not been used for long enough.
func (s *Set) drop(namespace string, w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.users > 0 || time.Since(w.usedAt) < idle || s.watches[namespace] != w {
		return
	}
	delete(s.watches, namespace)
	w.stop()
}

// Namespaces returns those that are watched.
func (s *Set) Namespaces() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.watches {
		names = append(names, name)
	}
	return names
}

// Close ends all watches. No watch is used after it.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, w := range s.watches {
		delete(s.watches, name)
		w.stop()
	}
}

// Watch has the Jobs of a namespace and their pods. Objects that it returns must not be changed. It is safe for concurrent use.
type Watch struct {
	client     kubernetes.Interface
	namespace  string
	events     *eventList
	jobs, pods cache.SharedIndexInformer
	cancel     context.CancelFunc

	// Guarded by the mutex of the set.
	users  int
	usedAt time.Time

	mu        sync.Mutex
	followers map[string]map[*Follower]struct{} // by Job
	trouble   error                             // the newest error of a list or a watch, or nil after a call that had none
	since     time.Time                         // when the trouble began
}

// Snapshot is what is known of a Job.
type Snapshot struct {
	// Job is nil if the watch shows none.
	Job *batchv1.Job
	// Pods are its pods, the newest first.
	Pods []*corev1.Pod
	// Synced reports whether the watch has had a whole list.
	Synced bool
	// Trouble is why the watch has heard nothing for a while, or nil.
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
	for _, informer := range []cache.SharedIndexInformer{w.jobs, w.pods} { // the errors are those of an informer that has started
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
	for _, informer := range []cache.SharedIndexInformer{w.jobs, w.pods} {
		go informer.RunWithContext(ctx)
	}
	return w
}

// stop ends the watch in the background.
func (w *Watch) stop() { w.cancel() }

// setTrouble notes why a call has failed, or with nil that one has not.
func (w *Watch) setTrouble(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble == nil {
		w.since = time.Now()
	}
	w.trouble = err
}

// withoutManagedFields drops what takes much of an object and is never read.
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

// listen wakes the followers of the Job that an object belongs to.
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
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only after a stop
		AddFunc: wake, UpdateFunc: func(_, now any) { wake(now) }, DeleteFunc: wake,
	})
}

// Follower learns of changes to one Job and its pods.
type Follower struct {
	// News has a value when something may have changed since it was last read.
	News  <-chan struct{}
	news  chan struct{}
	watch *Watch
	job   string
}

// Follow returns a follower of the Job of a name, which must be closed.
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

// Get returns what is known of the Job now.
func (f *Follower) Get() Snapshot {
	w := f.watch
	s := Snapshot{Synced: w.jobs.HasSynced() && w.pods.HasSynced()}
	w.mu.Lock()
	if time.Since(w.since) > quietTrouble {
		s.Trouble = w.trouble
	}
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
