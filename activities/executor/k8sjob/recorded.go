package k8sjob

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob/manifest"
)

// timeToLive is how long a finished Job stays for inspection, in seconds.
const timeToLive = 300

// Recorded gives the Job a time to live. Until then the Job stays, so that no result is lost before it is in the store.
func (e *Executor) Recorded(ctx context.Context, a executor.Attempt) error {
	spec, err := parseSpec(a.Spec)
	if err != nil {
		return err
	}
	c, namespace := e.target(spec)
	if c == nil {
		return fmt.Errorf("the node no longer has cluster %s", clusterOf(spec))
	}
	patch := fmt.Appendf(nil, `{"spec":{"ttlSecondsAfterFinished":%d}}`, timeToLive)
	_, err = c.Client.BatchV1().Jobs(namespace).Patch(ctx, manifest.Name(a.Identity), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
