package k8sjob

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	fakerest "k8s.io/client-go/rest/fake"
	clienttesting "k8s.io/client-go/testing"

	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/dev/testneeds"
)

// logAnnotation is the log of a pod of a fakeCluster.
const logAnnotation = "log"

// fakeCluster is a cluster of objects in memory. The test does what controllers and kubelets do, except that the deletion of a Job
// ends its pods.
type fakeCluster struct{ *fake.Clientset }

// newFakeBench returns a bench of a fake cluster.
func newFakeBench(t *testing.T, o Options) *bench {
	t.Helper()
	c := fakeCluster{fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})}
	c.PrependWatchReactor("*", c.watch)
	c.PrependReactor("create", "jobs", c.createJob)
	c.PrependReactor("delete", "jobs", c.deleteJob)
	clusters := fixedClusters{&cluster.Cluster{Name: "test", Client: c, Namespace: "ns"}}
	return (&bench{T: t, client: c, namespace: "ns", open: func() Clusters { return clusters }}).another(o)
}

// fixedClusters is one cluster that is always reached.
type fixedClusters struct{ *cluster.Cluster }

func (c fixedClusters) Reachable() []string { return []string{c.Name} }

func (fixedClusters) Check(string) {}

func (c fixedClusters) Get(name string) *cluster.Cluster {
	if name != c.Name {
		return nil
	}
	return c.Cluster
}

var (
	jobResource = batchv1.SchemeGroupVersion.WithResource("jobs")
	podResource = corev1.SchemeGroupVersion.WithResource("pods")
)

// watch opens a watch that begins with the existing objects: the watch of a Clientset loses what is created after the list.
func (c fakeCluster) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	kind := batchv1.SchemeGroupVersion.WithKind("Job")
	if action.GetResource() == podResource {
		kind = corev1.SchemeGroupVersion.WithKind("Pod")
	}
	source, err := c.Tracker().Watch(action.GetResource(), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	list, err := c.Tracker().List(action.GetResource(), kind, action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return true, nil, err
	}
	events := make(chan watch.Event, len(items))
	for _, item := range items {
		events <- watch.Event{Type: watch.Added, Object: item}
	}
	out := watch.NewProxyWatcher(events)
	go func() {
		defer source.Stop()
		for {
			select {
			case event := <-source.ResultChan():
				select {
				case events <- event:
				case <-out.StopChan():
					return
				}
			case <-out.StopChan():
				return
			}
		}
	}()
	return true, out, nil
}

func (c fakeCluster) createJob(action clienttesting.Action) (bool, runtime.Object, error) {
	job := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
	job.UID = newUID()
	return true, job, c.Tracker().Create(jobResource, job, job.Namespace)
}

// newUID returns a UID that no other object of this process has.
func newUID() types.UID { return types.UID(fmt.Sprint("uid-", serial.Add(1))) }

// deleteJob ends the pods of a Job, and removes them and the Job.
func (c fakeCluster) deleteJob(action clienttesting.Action) (bool, runtime.Object, error) {
	deletion := action.(clienttesting.DeleteActionImpl)
	found, err := c.Tracker().Get(jobResource, deletion.Namespace, deletion.Name)
	if err != nil {
		return true, nil, err
	}
	job := found.(*batchv1.Job)
	if p := deletion.DeleteOptions.Preconditions; p != nil && *p.UID != job.UID {
		return true, nil, apierrors.NewConflict(jobResource.GroupResource(), job.Name, fmt.Errorf("its UID is %s", job.UID))
	}
	list, err := c.Tracker().List(podResource, corev1.SchemeGroupVersion.WithKind("Pod"), deletion.Namespace)
	if err != nil {
		return true, nil, err
	}
	for _, pod := range list.(*corev1.PodList).Items {
		if !metav1.IsControlledBy(&pod, job) {
			continue
		}
		if pod.Status.Phase == corev1.PodRunning {
			pod.DeletionTimestamp = new(metav1.Now())
			setEnd(&pod, corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error"})
			if err := c.Tracker().Update(podResource, &pod, pod.Namespace); err != nil {
				return true, nil, err
			}
		}
		if err := c.Tracker().Delete(podResource, pod.Namespace, pod.Name); err != nil {
			return true, nil, err
		}
	}
	return true, nil, c.Tracker().Delete(jobResource, job.Namespace, job.Name)
}

// CoreV1 returns a client whose pods have the logs of their annotations.
func (c fakeCluster) CoreV1() typedcorev1.CoreV1Interface {
	return fakeCore{c.Clientset.CoreV1(), c}
}

type fakeCore struct {
	typedcorev1.CoreV1Interface
	cluster fakeCluster
}

func (c fakeCore) Pods(namespace string) typedcorev1.PodInterface {
	return fakePods{c.CoreV1Interface.Pods(namespace), c.cluster, namespace}
}

type fakePods struct {
	typedcorev1.PodInterface
	cluster   fakeCluster
	namespace string
}

func (p fakePods) GetLogs(name string, _ *corev1.PodLogOptions) *rest.Request {
	var log strings.Builder
	if pod, err := p.cluster.Tracker().Get(podResource, p.namespace, name); err == nil {
		for line := range strings.Lines(pod.(*corev1.Pod).Annotations[logAnnotation]) {
			log.WriteString("2026-01-02T03:04:05Z " + line)
		}
	}
	client := &fakerest.RESTClient{
		NegotiatedSerializer: scheme.Codecs.WithoutConversion(), GroupVersion: corev1.SchemeGroupVersion, VersionedAPIPath: "/log",
		Client: fakerest.CreateHTTPClient(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(log.String()))}, nil
		}),
	}
	return client.Request()
}

// startPod waits for the only Job of a fake cluster and starts its pod.
func (b *bench) startPod() *corev1.Pod {
	b.Helper()
	testneeds.Await(b, "there is a Job", func() bool { return len(b.jobs()) == 1 })
	job := &b.jobs()[0]
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace, pod.UID, pod.Spec.NodeName = job.Name+"-x", job.Namespace, newUID(), "node"
	pod.Labels = maps.Clone(pod.Labels)
	pod.Labels[batchv1.JobNameLabel] = job.Name
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	created, err := b.client.CoreV1().Pods(b.namespace).Create(b.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return created
}

// awaitWatch waits until the watch shows the pod of an attempt.
func (r *running) awaitWatch() {
	r.b.Helper()
	testneeds.Await(r.b, "the watch shows the pod", func() bool {
		a := r.b.find(r.a.ID)
		return a != nil && len(a.follower.Get().Pods) == 1
	})
}

// update changes a pod of a fake cluster.
func (b *bench) update(pod *corev1.Pod) {
	b.Helper()
	if _, err := b.client.CoreV1().Pods(b.namespace).Update(b.Context(), pod, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// setEnd makes the status of a pod that of one that has ended.
func setEnd(pod *corev1.Pod, end corev1.ContainerStateTerminated) {
	end.FinishedAt = metav1.Now()
	pod.Status.Phase = corev1.PodSucceeded
	if end.ExitCode != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &end}
}
