package fakekubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// podWorkers is the number of pods reported concurrently.
const podWorkers = 16

// podReporter reports the state of the pods of some nodes.
type podReporter struct {
	client kubernetes.Interface
	// isOurs reports whether a node belongs to this process.
	isOurs func(node string) bool
	pods   cache.Store
	queue  workqueue.TypedRateLimitingInterface[string]
}

// placedPods returns an informer for all pods that are placed on a node.
func placedPods(client kubernetes.Interface) (informers.SharedInformerFactory, cache.SharedIndexInformer) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}))
	return factory, factory.Core().V1().Pods().Informer()
}

// reportPods reports pods until the context ends.
func reportPods(ctx context.Context, client kubernetes.Interface, factory informers.SharedInformerFactory, informer cache.SharedIndexInformer, isOurs func(node string) bool) error {
	r := &podReporter{client: client, isOurs: isOurs, pods: informer.GetStore(), queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](10*time.Millisecond, time.Second),
	)}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.enqueue,
		UpdateFunc: func(_, pod any) { r.enqueue(pod) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	var workers sync.WaitGroup
	for range podWorkers {
		workers.Go(func() {
			for r.reportNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	r.queue.ShutDown()
	workers.Wait()
	return nil
}

func (r *podReporter) enqueue(object any) {
	if pod, ok := object.(*corev1.Pod); ok && r.isOurs(pod.Spec.NodeName) {
		r.queue.Add(pod.Namespace + "/" + pod.Name)
	}
}

// reportNext reports the next pod of the queue. It returns false after the queue has shut down.
func (r *podReporter) reportNext(ctx context.Context) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	object, exists, err := r.pods.GetByKey(key)
	if err != nil || !exists {
		r.queue.Forget(key)
		return true
	}
	pod := object.(*corev1.Pod)
	d := decide(pod, time.Now())
	if err := r.carryOut(ctx, pod, d); err != nil {
		if ctx.Err() == nil {
			fmt.Printf("pod %s: %v\n", key, err)
		}
		r.queue.AddRateLimited(key)
		return true
	}
	r.queue.Forget(key)
	if d.again > 0 {
		r.queue.AddAfter(key, d.again)
	}
	return true
}

func (r *podReporter) carryOut(ctx context.Context, pod *corev1.Pod, d decision) error {
	pods := r.client.CoreV1().Pods(pod.Namespace)
	if d.status != nil {
		// The UID keeps the patch off a later pod of the same name. A merge patch keeps the scheduler's conditions.
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": d.status})
		if err != nil {
			return err
		}
		_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("report %s: %w", d.status.Phase, err)
		}
	}
	if d.remove {
		now := int64(0)
		err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}
