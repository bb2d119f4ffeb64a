package k8sjob

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob/manifest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

func TestProgramsEndAsTheirPodsSay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end    corev1.ContainerStateTerminated
		oom    bool
		reason string
		output string
	}{
		"completed":    {end: corev1.ContainerStateTerminated{Message: `{"answer":42}`}, output: `{"answer":42}`},
		"failed":       {end: corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
		"out of mem":   {end: corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}, oom: true},
		"large output": {end: corev1.ContainerStateTerminated{Message: strings.Repeat("x", 4096)}, reason: v1.ReasonOutput},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeBench(t, Options{})
			r := b.start(b.attempt("task", map[string]any{"annotations": map[string]any{logAnnotation: "one\ntwo\n"}}))
			pod := b.startPod()
			<-r.spawns
			setEnd(pod, test.end)
			b.update(pod)
			result := r.end()
			if result.ExitCode != int(test.end.ExitCode) || result.OOMKilled != test.oom || result.Stopped {
				t.Errorf("the result is %+v", result)
			}
			if (result.Failure != nil) != (test.reason != "") || result.Failure != nil && result.Failure.Reason != test.reason {
				t.Errorf("the failure is %+v", result.Failure)
			}
			if got := r.out.String(); got != "one\ntwo\n" {
				t.Errorf("the log is %q", got)
			}
			workload := &v1.Workload{Cluster: "test", Namespace: b.namespace, Job: b.jobs()[0].Name}
			if len(r.located) != 2 || !proto.Equal(r.located[0], workload) {
				t.Errorf("before its pod it runs as %v", r.located)
			} else if workload.Pod = pod.Name; !proto.Equal(r.located[1], workload) {
				t.Errorf("with its pod it runs as %v", r.located)
			}
			if output, _ := os.ReadFile(r.a.Env["SWITCHYARD_OUTPUT"]); string(output) != test.output {
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

// The second dispatch takes the Job over, a stale one does not, and the third one sees the program end.
func TestAnotherNodeContinuesWithTheJob(t *testing.T) {
	t.Parallel()
	b := newFakeBench(t, Options{})
	a := b.attempt("long", nil)
	first := b.start(a)
	pod := b.startPod()
	<-first.spawns

	second := b.another(Options{})
	a.Identity.Node, a.Identity.Claim, a.ID, a.Remote.Continues = "n2", 2, a.ID+"-2", true
	next := second.start(a)
	if r := first.end(); !r.Stopped || !strings.Contains(r.Released, "another node") {
		t.Errorf("the first node has %+v", r)
	}
	a.Identity.Claim, a.ID = 1, a.ID+"-late"
	if r := b.start(a).end(); r.Released == "" {
		t.Errorf("a late dispatch has %+v", r)
	}
	next.stop(executor.ErrLetGo)
	if r := next.end(); !r.Stopped {
		t.Errorf("the second node has %+v", r)
	}

	// Its worker was killed before it could report that the attempt had started.
	a.Identity.Claim, a.ID, a.Remote.Continues = 3, a.ID+"-3", false
	last := second.start(a)
	<-last.spawns
	setEnd(pod, corev1.ContainerStateTerminated{Message: `{"answer":42}`})
	b.update(pod)
	if r := last.end(); r.ExitCode != 0 || r.Stopped || r.Failure != nil {
		t.Errorf("the third node has %+v", r)
	}
	if pods := b.pods(); len(pods) != 1 || pods[0].Name != pod.Name {
		t.Errorf("the pod %s has been replaced: %v", pod.Name, pods)
	}
	if jobs := b.jobs(); len(jobs) != 1 {
		t.Errorf("there are %d Jobs", len(jobs))
	} else if n, _, ok := manifest.ParseClaim(jobs[0].Annotations[manifest.AnnotationClaim]); !ok || n != 3 {
		t.Errorf("the claim is %v", jobs[0].Annotations)
	}

	// That node dies before the end is recorded.
	if err := os.Remove(a.Env["SWITCHYARD_OUTPUT"]); err != nil {
		t.Fatal(err)
	}
	a.Identity.Claim, a.ID, a.Remote.Continues = 4, a.ID+"-4", true
	if r := b.start(a).end(); r.ExitCode != 0 || r.Stopped || r.Failure != nil {
		t.Errorf("the fourth node has %+v", r)
	}
	if output, err := os.ReadFile(a.Env["SWITCHYARD_OUTPUT"]); string(output) != `{"answer":42}` {
		t.Errorf("output %q, error %v", output, err)
	}
}

func TestCancelDeletesTheJob(t *testing.T) {
	t.Parallel()
	b := newFakeBench(t, Options{})
	r := b.start(b.attempt("long", nil))
	pod := b.startPod()
	r.awaitWatch()
	if refusal, ok := b.Pause(t.Context(), r.a.ID).(*executor.Refusal); !ok || !strings.Contains(refusal.Text, "pod "+pod.Name+" is already on node node") {
		t.Errorf("refusal %v", refusal)
	}
	r.stop(errCancelled)
	if result := r.end(); !result.Stopped {
		t.Errorf("the result is %+v", result)
	}
	b.checkEmpty()
	if err := b.Pause(t.Context(), r.a.ID); err != executor.ErrNotRunning {
		t.Errorf("to pause what does not run: %v", err)
	}
}

func TestJobWithoutAPodIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	b := newFakeBench(t, Options{})
	r := b.start(b.attempt("waits", nil))
	testneeds.Await(b, "it can be paused", func() bool { return b.Pause(t.Context(), r.a.ID) == nil })
	testneeds.Await(b, "it says that it is suspended", func() bool { return strings.Contains(r.waitingFor(), "is suspended") })
	if err := b.Resume(t.Context(), r.a.ID); err != nil {
		t.Fatal(err)
	}
	if job := b.jobs()[0]; *job.Spec.Suspend {
		t.Error("the Job is suspended")
	}
}

func TestLostPodsAreNoTaskFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lose         func(b *bench, pod *corev1.Pod) error
		reason, text string
	}{
		"Job deleted": {func(b *bench, _ *corev1.Pod) error {
			return b.client.BatchV1().Jobs(b.namespace).Delete(b.Context(), b.jobs()[0].Name, metav1.DeleteOptions{})
		}, v1.ReasonDeleted, "was deleted by another party"},
		"pod deleted": {func(b *bench, pod *corev1.Pod) error {
			pod.DeletionTimestamp = new(metav1.Now())
			setEnd(pod, corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error"})
			b.update(pod)
			return nil
		}, v1.ReasonDeleted, "was deleted by another party"},
		"evicted": {func(b *bench, pod *corev1.Pod) error {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
			setEnd(pod, corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error"})
			b.update(pod)
			return nil
		}, v1.ReasonEvicted, "EvictionByEvictionAPI"},
		"without an image": {func(b *bench, pod *corev1.Pod) error {
			pod.Status.Phase = corev1.PodPending
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
			b.update(pod)
			return nil
		}, v1.ReasonStartFailed, "ImagePullBackOff"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeBench(t, Options{StartTimeout: time.Nanosecond})
			r := b.start(b.attempt("long", nil))
			pod := b.startPod()
			r.awaitWatch()
			if err := test.lose(b, pod); err != nil {
				t.Fatal(err)
			}
			r.checkFailure(test.reason, test.text)
			if test.reason == v1.ReasonStartFailed {
				b.checkEmpty()
			}
		})
	}
}

func TestMissingJobIsNotRecreatedOnTakeOver(t *testing.T) {
	t.Parallel()
	b := newFakeBench(t, Options{})
	a := b.attempt("gone", nil)
	a.Remote.Continues = true
	b.start(a).checkFailure(v1.ReasonDeleted, "was deleted by another party")
	b.checkEmpty()
}

func TestNodeWithoutTheClusterHandsTheAttemptBack(t *testing.T) {
	t.Parallel()
	b := newFakeBench(t, Options{})
	r := b.start(b.attempt("elsewhere", map[string]any{"cluster": "other"}))
	if result := r.end(); !strings.Contains(result.Released, "cannot reach cluster other") {
		t.Errorf("the result is %+v", result)
	}
}

func TestJobsWhoseRunsAreGoneAreSwept(t *testing.T) {
	t.Parallel()
	b := newFakeBench(t, Options{})
	for _, task := range []string{"wanted", "unwanted", "unknown"} {
		r := b.start(b.attempt(task, nil))
		<-r.spawns
		r.stop(executor.ErrLetGo)
		r.end()
	}
	var sweeps atomic.Int32
	isOpen := func(_ context.Context, id executor.Identity) (bool, error) {
		if id.Task == "unknown" {
			sweeps.Add(1)
			return false, errors.New("not known")
		}
		return id.Task == "wanted", nil
	}
	own := b.another(Options{IsOpen: isOpen, SweepInterval: 10 * time.Millisecond})
	kept := own.start(own.attempt("own", nil))
	<-kept.spawns
	testneeds.Await(b, "the Job that is not wanted is gone", func() bool { return len(b.jobs()) == 3 })
	before := sweeps.Load()
	testneeds.Await(b, "there are more sweeps", func() bool { return sweeps.Load() > before+3 })
	var left []string
	for _, job := range b.jobs() {
		id, _ := manifest.Identity(job.Annotations)
		left = append(left, id.Task)
	}
	if all := strings.Join(left, " ") + " "; len(left) != 3 || strings.Contains(all, "unwanted ") {
		t.Errorf("there are %q", left)
	}
}
