//go:build kubernetes

package k8sjob

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"switchyard/activities/executor"
	"switchyard/dev/kubetest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// pretends returns a spec whose pod behaves on a fake node as its annotations say.
func pretends(annotations map[string]any) map[string]any {
	return map[string]any{"annotations": annotations}
}

func TestCancelDeletesAJobThatWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	r := b.start(b.attempt("big", map[string]any{"nodeSelector": map[string]any{"no": "such"}}))
	testneeds.Await(b, "it says what it waits for", func() bool { return strings.Contains(r.waitingFor(), "nodes are available") })

	if err := b.Pause(t.Context(), r.a.ID); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(b, "the Job is suspended", func() bool { return *b.jobs()[0].Spec.Suspend && strings.Contains(r.waitingFor(), "suspended") })
	testneeds.Await(b, "it has no pod", func() bool { return len(b.pods()) == 0 })
	if err := b.Resume(t.Context(), r.a.ID); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(b, "it waits again", func() bool { return strings.Contains(r.waitingFor(), "nodes are available") })
	r.stop(errCancelled)
	if result := r.end(); !result.Stopped {
		t.Errorf("the result is %+v", result)
	}
	b.checkEmpty()
}

func TestExternalDeletionIsReported(t *testing.T) {
	t.Parallel()
	c := kubetest.Shared(t)
	foreground := metav1.DeletePropagationForeground
	for name, test := range map[string]struct {
		remove func(*bench, corev1.Pod) error
		text   string
	}{
		"job": {func(b *bench, _ corev1.Pod) error {
			return c.Client.BatchV1().Jobs(b.namespace).Delete(t.Context(), b.jobs()[0].Name, metav1.DeleteOptions{PropagationPolicy: &foreground})
		}, "was deleted by another party"},
		"pod": {func(b *bench, pod corev1.Pod) error {
			return c.Client.CoreV1().Pods(b.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{})
		}, "was deleted by another party"},
		"pod-by-force": {func(b *bench, pod corev1.Pod) error {
			return c.Client.CoreV1().Pods(b.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		}, ""},
		"namespace": {func(b *bench, _ corev1.Pod) error {
			return c.Client.CoreV1().Namespaces().Delete(t.Context(), b.namespace, metav1.DeleteOptions{})
		}, "deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c, Options{})
			r := b.start(b.attempt("long", pretends(map[string]any{kubetest.RunsForAnnotation: "1h"})))
			if err := test.remove(b, b.runs()); err != nil {
				t.Fatal(err)
			}
			r.checkFailure(v1.ReasonDeleted, test.text)
		})
	}
}

func TestWhatTheClusterRefusesIsABadSpec(t *testing.T) {
	t.Parallel()
	c := kubetest.Shared(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
	}}
	t.Run("quota", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, c, Options{StartTimeout: time.Second})
		if _, err := c.Client.CoreV1().ResourceQuotas(b.namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		testneeds.Await(b, "the quota counts", func() bool {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: kubetest.BusyboxImage}}}}
			_, err := c.Client.CoreV1().Pods(b.namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil && strings.Contains(err.Error(), "exceeded quota")
		})
		b.start(b.attempt("quota", nil)).checkFailure(v1.ReasonBadSpec, "exceeded quota")
		b.checkEmpty()
	})
	for name, test := range map[string]struct {
		spec map[string]any
		text string
	}{
		"namespace": {map[string]any{"namespace": "no-such"}, "has no namespace no-such"},
		"typo":      {map[string]any{"volumes": []any{map[string]any{"name": "v", "emptydirr": map[string]any{}}}}, "emptydirr"},
		"volume":    {map[string]any{"volumeMounts": []any{map[string]any{"name": "nothing", "mountPath": "/x"}}}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c, Options{})
			r := b.start(b.attempt(name, test.spec))
			<-r.done
			if start := executor.AsStartError(r.err); start == nil || !start.BadSpec || !strings.Contains(start.Error(), test.text) {
				t.Errorf("the error is %v, the result %+v", r.err, r.result)
			}
			b.checkEmpty()
		})
	}
}

func TestTaskThatIsPutBackHasAJobOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	a := b.attempt("again", pretends(map[string]any{kubetest.RunsForAnnotation: "1h"}))
	first := b.start(a)
	pod := b.runs()
	first.stop(executor.ErrLetGo)
	first.end()
	a.Identity.PutBacks, a.Identity.Claim, a.ID = 1, 2, a.ID+"-2"
	a.Spec = b.attempt("again", nil).Spec
	if r := b.start(a).end(); r.Stopped || r.ExitCode != 0 || r.Failure != nil {
		t.Errorf("the result is %+v", r)
	}
	for _, now := range b.pods() {
		if now.UID == pod.UID {
			t.Error("the pod of before is left")
		}
	}
	if jobs := b.jobs(); len(jobs) != 1 {
		t.Errorf("there are %d Jobs", len(jobs))
	}
}

func TestEvictionIsNotATaskFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	r := b.start(b.attempt("evicted", pretends(map[string]any{kubetest.RunsForAnnotation: "1h"})))
	pod := b.runs()
	if err := b.client.PolicyV1().Evictions(b.namespace).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: b.namespace}}); err != nil {
		t.Fatal(err)
	}
	r.checkFailure(v1.ReasonEvicted, "EvictionByEvictionAPI")
}

func TestNodeWithExpiredCredentialsHandsTheAttemptBack(t *testing.T) {
	t.Parallel()
	c := kubetest.Shared(t)
	b := newBench(t, c, Options{})
	if r := b.withToken(c, "expired").another(Options{}).start(b.attempt("refused", nil)).end(); !strings.Contains(r.Released, "does not accept the credentials") {
		t.Errorf("the result is %+v", r)
	}
	b.checkEmpty()
}

// withToken returns a bench whose further executors use the credentials of a token.
func (b *bench) withToken(c *kubetest.Cluster, token string) *bench {
	b.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		*user = clientcmdapi.AuthInfo{Token: token}
	}
	limited := filepath.Join(b.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, limited); err != nil {
		b.Fatal(err)
	}
	return &bench{T: b.T, client: b.client, namespace: b.namespace, open: opener(b.T, limited, nil)}
}

// A node whose credentials let it create a Job but not watch it reports that while it waits.
func TestMissingWatchPermissionIsReported(t *testing.T) {
	t.Parallel()
	shared := kubetest.Shared(t)
	b := newBench(t, shared, Options{})
	c, ctx := b.client, t.Context()
	name := metav1.ObjectMeta{Name: "maker"}
	_, err := c.CoreV1().ServiceAccounts(b.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	if err == nil {
		_, err = c.RbacV1().Roles(b.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "get", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		}}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = c.RbacV1().RoleBindings(b.namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name.Name, Namespace: b.namespace}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.CoreV1().ServiceAccounts(b.namespace).CreateToken(ctx, name.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	testneeds.Await(b, "the account may create Secrets", func() bool {
		review, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + b.namespace + ":" + name.Name,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: b.namespace, Verb: "create", Resource: "secrets"},
		}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed
	})
	r := b.withToken(shared, token.Status.Token).another(Options{}).start(b.attempt("blind", nil))
	testneeds.Await(b, "it says that it cannot watch", func() bool {
		return strings.Contains(r.waitingFor(), "cannot be watched") && strings.Contains(r.waitingFor(), "forbidden")
	})
}

func TestUnavailableAPIServerIsAwaited(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t, kubetest.Options{FakeNodes: 1})
	b := newBench(t, c, Options{})
	r := b.start(b.attempt("outage", pretends(map[string]any{kubetest.RunsForAnnotation: "1h"})))
	pod := b.runs()
	c.StopAPI(t)
	testneeds.Await(b, "it says that the cluster is away", func() bool { return strings.Contains(r.waitingFor(), "cannot be watched") })
	c.StartAPI(t)
	testneeds.Await(b, "it says no more that the cluster is away", func() bool { return r.waitingFor() == "" })
	patch := []byte(`{"metadata":{"annotations":{"` + kubetest.RunsForAnnotation + `":"1ms"}}}`)
	if _, err := c.Client.CoreV1().Pods(b.namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if result := r.end(); result.ExitCode != 0 || result.Stopped || result.Failure != nil {
		t.Errorf("the result is %+v", result)
	}
	if jobs := b.jobs(); len(jobs) != 1 {
		t.Errorf("there are %d Jobs", len(jobs))
	}
}
