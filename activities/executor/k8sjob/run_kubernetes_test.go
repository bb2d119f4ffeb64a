//go:build kubernetes

package k8sjob

import (
	"os"
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
	"switchyard/activities/executor/k8sjob/manifest"
	"switchyard/dev/kubetest"
	v1 "switchyard/proto/switchyard/v1"
)

// pretends returns a spec whose pod behaves on a fake node as its annotations say.
func pretends(annotations map[string]any) map[string]any {
	return map[string]any{"annotations": annotations}
}

func TestProgramsEndAsTheirPodsSay(t *testing.T) {
	t.Parallel()
	c := kubetest.Shared(t)
	for name, test := range map[string]struct {
		annotations map[string]any
		code        int
		oom         bool
		reason      string
		output      string
	}{
		"completed":    {annotations: map[string]any{kubetest.MessageAnnotation: `{"answer":42}`}, output: `{"answer":42}`},
		"failed":       {annotations: map[string]any{kubetest.ExitAnnotation: "3"}, code: 3},
		"out-of-mem":   {annotations: map[string]any{kubetest.ReasonAnnotation: "OOMKilled"}, code: 137, oom: true},
		"large-output": {annotations: map[string]any{kubetest.MessageAnnotation: strings.Repeat("x", 4096)}, reason: v1.ReasonOutput},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c, Options{})
			r := b.start(b.attempt(name, pretends(test.annotations)))
			result := r.end()
			if result.ExitCode != test.code || result.OOMKilled != test.oom || result.Stopped {
				t.Errorf("the result is %+v", result)
			}
			if (result.Failure != nil) != (test.reason != "") || result.Failure != nil && result.Failure.Reason != test.reason {
				t.Errorf("the failure is %+v", result.Failure)
			}
			select {
			case <-r.spawns:
			default:
				t.Error("spawned was not called")
			}
			output, _ := os.ReadFile(r.a.Env["SWITCHYARD_OUTPUT"])
			if string(output) != test.output {
				t.Errorf("the output is %q", output)
			}
			jobs := b.jobs()
			if len(jobs) != 1 || jobs[0].Spec.TTLSecondsAfterFinished != nil {
				t.Fatalf("before the result is recorded there are %v", jobs)
			}
			if err := b.Recorded(t.Context(), r.a); err != nil {
				t.Fatal(err)
			}
			if ttl := b.jobs()[0].Spec.TTLSecondsAfterFinished; ttl == nil || *ttl != timeToLive {
				t.Errorf("the time to live is %v", ttl)
			}
		})
	}
}

func TestAnotherNodeContinuesWithTheJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	a := b.attempt("long", pretends(map[string]any{kubetest.RunsForAnnotation: "1h"}))
	first := b.start(a)
	pod := b.runs()

	second := b.another(Options{})
	a.Identity.Node, a.Identity.Claim, a.ID, a.Continues = "n2", 2, a.ID+"-2", true
	next := second.start(a)
	if r := first.end(); !r.Stopped || !strings.Contains(r.Released, "another node") {
		t.Errorf("the first node has %+v", r)
	}
	// A stale dispatch takes nothing over.
	a.Identity.Claim, a.ID = 1, a.ID+"-late"
	if r := b.start(a).end(); r.Released == "" {
		t.Errorf("a late dispatch has %+v", r)
	}
	next.stop(executor.ErrLetGo)
	if r := next.end(); !r.Stopped {
		t.Errorf("the second node has %+v", r)
	}
	if now := b.runs(); now.UID != pod.UID {
		t.Error("the program was started again")
	}

	// The third dispatch sees the program end.
	a.Identity.Claim, a.ID = 3, a.ID+"-3"
	last := second.start(a)
	<-last.spawns
	patch := []byte(`{"metadata":{"annotations":{"` + kubetest.RunsForAnnotation + `":"1ms"}}}`)
	if _, err := b.cluster.Client.CoreV1().Pods(b.namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if r := last.end(); r.ExitCode != 0 || r.Stopped || r.Failure != nil {
		t.Errorf("the third node has %+v", r)
	}
	if jobs := b.jobs(); len(jobs) != 1 {
		t.Errorf("there are %d Jobs", len(jobs))
	} else if n, _, ok := manifest.ParseClaim(jobs[0].Annotations[manifest.AnnotationClaim]); !ok || n != 3 {
		t.Errorf("the claim is %v", jobs[0].Annotations)
	}
}

func TestDispatchThatFindsItsOwnJobContinuesWithIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	a := b.attempt("again", pretends(map[string]any{kubetest.RunsForAnnotation: "1h"}))
	first := b.start(a)
	pod := b.runs()
	first.stop(executor.ErrLetGo)
	first.end()
	a.Identity.Claim, a.ID = 2, a.ID+"-2" // the worker was killed before it could report that the attempt had started
	next := b.another(Options{}).start(a)
	<-next.spawns
	next.stop(errCancelled)
	if r := next.end(); !r.Stopped {
		t.Errorf("the result is %+v", r)
	}
	if all := b.pods(); len(all) > 0 {
		t.Errorf("pod %s is left after a cancel; it was %s", all[0].Name, pod.Name)
	}
	b.checkEmpty()
}

func TestCancelDeletesAJobThatWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	r := b.start(b.attempt("big", map[string]any{"nodeSelector": map[string]any{"no": "such"}}))
	b.eventually("it says what it waits for", func() bool { return strings.Contains(r.waitingFor(), "nodes are available") })

	if err := b.Pause(t.Context(), r.a.ID); err != nil {
		t.Fatal(err)
	}
	b.eventually("the Job is suspended", func() bool { return *b.jobs()[0].Spec.Suspend && strings.Contains(r.waitingFor(), "suspended") })
	b.eventually("it has no pod", func() bool { return len(b.pods()) == 0 })
	if err := b.Resume(t.Context(), r.a.ID); err != nil {
		t.Fatal(err)
	}
	b.eventually("it waits again", func() bool { return strings.Contains(r.waitingFor(), "nodes are available") })
	r.stop(errCancelled)
	if result := r.end(); !result.Stopped {
		t.Errorf("the result is %+v", result)
	}
	b.checkEmpty()
}

func TestPodThatHasANodeIsNotPaused(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	r := b.start(b.attempt("long", pretends(map[string]any{kubetest.RunsForAnnotation: "1h"})))
	b.eventually("the watch shows the node of the pod", func() bool {
		a := b.find(r.a.ID)
		if a == nil {
			return false
		}
		pods := a.follower.Get().Pods
		return len(pods) == 1 && pods[0].Spec.NodeName != ""
	})
	if refusal, ok := b.Pause(t.Context(), r.a.ID).(*executor.Refusal); !ok || !strings.Contains(refusal.Text, "already") {
		t.Errorf("refusal %v", refusal)
	}
	if err := b.Pause(t.Context(), "another"); err != executor.ErrNotRunning {
		t.Errorf("to pause what does not run: %v", err)
	}
}

func TestMissingImageEndsTheAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{StartTimeout: 200 * time.Millisecond})
	r := b.start(b.attempt("image", pretends(map[string]any{kubetest.WaitingAnnotation: "ImagePullBackOff"})))
	r.checkFailure(v1.ReasonStartFailed, "ImagePullBackOff")
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

func TestMissingJobIsNotRecreatedOnTakeOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	a := b.attempt("gone", nil)
	a.Continues = true
	b.start(a).checkFailure(v1.ReasonDeleted, "was deleted by another party")
	b.checkEmpty()
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
		b.eventually("the quota counts", func() bool {
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

func TestNodeWithoutTheClusterHandsTheAttemptBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	r := b.start(b.attempt("elsewhere", map[string]any{"cluster": "other"}))
	if result := r.end(); !strings.Contains(result.Released, "cannot reach cluster other") {
		t.Errorf("the result is %+v", result)
	}
}

func TestJobsWhoseRunsAreGoneAreSwept(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	for _, task := range []string{"wanted", "unwanted", "unknown"} {
		r := b.start(b.attempt(task, pretends(map[string]any{kubetest.RunsForAnnotation: "1h"})))
		<-r.spawns
		r.stop(executor.ErrLetGo)
		r.end()
	}
	own := b.another(Options{SweepInterval: 100 * time.Millisecond, IsOpen: isOpen(b.namespace)})
	kept := own.start(own.attempt("unwanted-here", pretends(map[string]any{kubetest.RunsForAnnotation: "1h"})))
	<-kept.spawns
	b.eventually("the Job that is not wanted is gone", func() bool { return len(b.jobs()) == 3 })
	time.Sleep(500 * time.Millisecond) // some more sweeps
	var left []string
	for _, job := range b.jobs() {
		id, _ := manifest.Identity(job.Annotations)
		left = append(left, id.Task)
	}
	if len(left) != 3 || strings.Contains(strings.Join(left, " ")+" ", "unwanted ") {
		t.Errorf("there are %q", left)
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
	if err := b.cluster.Client.PolicyV1().Evictions(b.namespace).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: b.namespace}}); err != nil {
		t.Fatal(err)
	}
	r.checkFailure(v1.ReasonEvicted, "EvictionByEvictionAPI")
}

// The node that ran an attempt dies after the program has ended and before the end is recorded.
func TestEndThatIsNotRecordedIsReadByTheNextNode(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	a := b.attempt("done", pretends(map[string]any{kubetest.ExitAnnotation: "0", kubetest.MessageAnnotation: `{"answer":42}`, kubetest.LogAnnotation: "one\ntwo"}))
	first := b.start(a)
	first.end()
	pod := b.pods()[0].UID
	if err := os.Remove(a.Env["SWITCHYARD_OUTPUT"]); err != nil {
		t.Fatal(err)
	}
	a.Identity.Claim, a.ID, a.Continues = 2, a.ID+"-2", true
	next := b.another(Options{}).start(a)
	if r := next.end(); r.ExitCode != 0 || r.Stopped || r.Failure != nil {
		t.Errorf("the result is %+v", r)
	}
	output, err := os.ReadFile(a.Env["SWITCHYARD_OUTPUT"])
	if string(output) != `{"answer":42}` || next.out.String() != "one\ntwo\n" {
		t.Errorf("output %q, %v, log %q", output, err, next.out.String())
	}
	if pods := b.pods(); len(pods) != 1 || pods[0].UID != pod {
		t.Errorf("there are %d pods, or another one than before", len(pods))
	}
}

func TestNodeWithExpiredCredentialsHandsTheAttemptBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	if r := b.withToken("expired").another(Options{}).start(b.attempt("refused", nil)).end(); !strings.Contains(r.Released, "does not accept the credentials") {
		t.Errorf("the result is %+v", r)
	}
	b.checkEmpty()
}

// withToken returns a bench whose further executors use the credentials of a token.
func (b *bench) withToken(token string) *bench {
	b.Helper()
	config, err := clientcmd.LoadFromFile(b.cluster.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		*user = clientcmdapi.AuthInfo{Token: token}
	}
	limited := *b.cluster
	limited.Kubeconfig = filepath.Join(b.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, limited.Kubeconfig); err != nil {
		b.Fatal(err)
	}
	return &bench{T: b.T, cluster: &limited, namespace: b.namespace}
}

// A node whose credentials let it create a Job but not watch it reports that while it waits.
func TestMissingWatchPermissionIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(t, kubetest.Shared(t), Options{})
	c, ctx := b.cluster.Client, t.Context()
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
	b.eventually("the account may create Secrets", func() bool {
		review, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + b.namespace + ":" + name.Name,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: b.namespace, Verb: "create", Resource: "secrets"},
		}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed
	})
	r := b.withToken(token.Status.Token).another(Options{}).start(b.attempt("blind", nil))
	b.eventually("it says that it cannot watch", func() bool {
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
	b.eventually("it says that the cluster is away", func() bool { return strings.Contains(r.waitingFor(), "cannot be watched") })
	c.StartAPI(t)
	b.eventually("it says no more that the cluster is away", func() bool { return r.waitingFor() == "" })
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
