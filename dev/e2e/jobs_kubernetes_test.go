//go:build kubernetes

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"switchyard/dev/kubetest"
	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// TestLongKubernetesRunsJobs runs Jobs in every way on one stack and one Kubernetes, and makes them lose their nodes,
// workers and servers.
func TestLongKubernetesRunsJobs(t *testing.T) {
	testneeds.Long(t)
	kubetest.Program(t)
	c := kubetest.Start(t, kubetest.Options{RealNode: true, Images: []string{helperArchive(t)}})
	k := &kubeStack{Stack: startDev(t, "--nodes", "0"), cluster: c}
	t.Run("cost", func(t *testing.T) { testCostOfJob(t, k) })
	t.Run("alive", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *kubeStack){
			"values": testJobTakesAndGivesValues, "exits": testJobsEndAsTheirPrograms, "cancel": testCancelledJobLeavesNothing,
			"template": testJobOfTwoContainers, "helper": testHelperBringsLargeOutputs,
			"kill": testKilledWorkerLosesNoLine, "drain": testDrainedWorkerHandsJobOver, "terminated": testJobOfTerminatedRunIsSwept,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t, k) })
		}
	})
	t.Run("paused API server", func(t *testing.T) {
		testJobOutlivesAPIServer(t, k, "paused", 15*time.Second, c.PauseAPI, c.ResumeAPI)
	})
	t.Run("killed API server", func(t *testing.T) {
		testJobOutlivesAPIServer(t, k, "killed", time.Minute, c.StopAPI, c.StartAPI)
	})
}

// testCostOfJob reports how long a Job of `true` takes directly and as a task.
func testCostOfJob(t *testing.T, k *kubeStack) {
	k.join(t, "cost-1", "cost")
	namespace := k.cluster.NewNamespace(t)
	jobs := k.cluster.Client.BatchV1().Jobs(namespace)
	bare := func() {
		job, err := jobs.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{GenerateName: "bare-"}, Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{
				{Name: "main", Image: kubetest.BusyboxImage, Command: []string{"true"}},
			}}},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		processes.Await(t, "the bare Job ends", func() bool {
			job, err = jobs.Get(t.Context(), job.Name, metav1.GetOptions{})
			return err == nil && job.Status.Succeeded == 1 && job.Status.CompletionTime != nil
		})
	}
	definition := fmt.Sprintf(`
name: kube-cost
tasks:
  nothing: { type: k8s_job, spec: { cluster: cost, namespace: %s, image: "%s", command: [ "true" ] } }
`, namespace, kubetest.BusyboxImage)
	through := func() {
		if d := k.End(t, k.Submit(t, definition)); d.State != "completed" {
			t.Errorf("the run is %+v", d)
		}
	}
	const rounds = 5
	var alone, asTask []time.Duration
	for range rounds {
		for took, do := range map[*[]time.Duration]func(){&alone: bare, &asTask: through} {
			at := time.Now()
			do()
			*took = append(*took, time.Since(at).Round(time.Millisecond))
		}
	}
	slices.Sort(alone)
	slices.Sort(asTask)
	t.Logf("a Job of `true` takes %v by itself and %v as a task, with the start of `switchyard submit`; all: %v, %v", alone[rounds/2], asTask[rounds/2], alone, asTask)
}

// testJobTakesAndGivesValues passes values from a shell task to a Job, and from the Job to another task.
func testJobTakesAndGivesValues(t *testing.T, k *kubeStack) {
	const secret = "sesame-41b7c09e"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	k.join(t, "values-1", "values", "--allow-secret", "file:"+file)
	namespace := k.cluster.NewNamespace(t)
	id := k.Submit(t, fmt.Sprintf(`
name: kube-values
tasks:
  made: { type: shell, spec: { command: 'echo "{\"answer\":42}" > "$SWITCHYARD_OUTPUT"' } }
  job:
    type: k8s_job
    dependsOn: [made]
    resources: { cores: 0.1, memoryMb: 64 }
    env: { GREETING: "it costs $(HOME) $5" }
    secretEnv: { TOKEN: "file:%s" }
    spec:
      cluster: values
      namespace: %s
      image: %s
      labels: { team: blue }
      env: [{ name: POD, valueFrom: { fieldRef: { fieldPath: metadata.name } } }]
      command: |
        cat "$SWITCHYARD_INPUT"; echo
        echo "pod $POD says: $GREETING"
        echo "the token is $TOKEN"; echo "it has ${#TOKEN} characters" >&2
        printf '{"sum": 43, "token": "%%s"}' "$TOKEN" > "$SWITCHYARD_OUTPUT"
  after: { type: shell, dependsOn: [job], spec: { command: 'echo "sum is ${{ parent.job.output.sum }}"' } }
`, file, namespace, kubetest.BusyboxImage))
	d := k.End(t, id)
	job := d.Tasks["job"]
	if d.State != "completed" || job.State != "completed" || job.Node != "values-1" || job.Result.Output["sum"] != 43.0 || job.Result.Output["token"] != "***" {
		t.Errorf("the run is %+v", d)
	}
	if got := d.Tasks["after"].Result.Stdout; got != "sum is 43\n" {
		t.Errorf("the task after it says %q", got)
	}
	jobs := k.jobs(t, namespace, id)
	if len(jobs) != 1 || jobs[0].Labels["switchyard.dev/task"] != "job" || jobs[0].Labels["team"] != "blue" || jobs[0].Labels["app.kubernetes.io/managed-by"] != "switchyard" {
		t.Fatalf("the Jobs of the run are %+v", jobs)
	}
	for _, want := range []string{
		`"answer":42`, "says: it costs $(HOME) $5\n", "the token is ***\n", fmt.Sprintf("it has %d characters\n", len(secret)), "pod " + jobs[0].Name,
	} {
		awaitLogText(t, k.Gateway, id, "job", want)
	}
	found := newLeaks(t, secret)
	found.search("the log", logOf(t, k.Gateway, id, "job"))
	stdout, _ := do(t, k.Gateway, 0, "runs", "get", id, "-o", "json")
	found.search("the run", stdout)
	found.searchHistories(k.Temporal, id)
	processes.Await(t, "the Job has a time to live", func() bool {
		jobs = k.jobs(t, namespace, id)
		return len(jobs) == 1 && jobs[0].Spec.TTLSecondsAfterFinished != nil
	})
	pods, err := k.cluster.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "switchyard.dev/run=" + id + ",switchyard.dev/task=job"})
	if err != nil || len(pods.Items) != 1 {
		t.Errorf("the pods of the run are %+v, %v", pods, err)
	}
	for _, name := range k.left(t, namespace) {
		if strings.HasPrefix(name, "Secret ") && name != "Secret "+jobs[0].Name {
			t.Errorf("there is a %s", name)
		}
	}
}

// testJobsEndAsTheirPrograms makes Jobs fail in several ways.
func testJobsEndAsTheirPrograms(t *testing.T, k *kubeStack) {
	k.join(t, "exits-1", "exits", "--kube-start-timeout", "5s")
	namespace := k.cluster.NewNamespace(t)
	id := k.Submit(t, fmt.Sprintf(`
name: kube-exits
defaults:
  type: k8s_job
  retry: { maxRetries: 0 }
tasks:
  code: { spec: { cluster: exits, namespace: %[1]s, image: "%[2]s", command: "echo out; exit 7" } }
  memory: { resources: { memoryMb: 32 }, spec: { cluster: exits, namespace: %[1]s, image: "%[2]s", command: [tail, /dev/zero] } }
  image: { spec: { cluster: exits, namespace: %[1]s, image: "no-such.invalid/image:1", command: "true" } }
  program: { spec: { cluster: exits, namespace: %[1]s, image: "%[2]s", command: [/no/such/program] } }
  time: { timeout: 3s, spec: { cluster: exits, namespace: %[1]s, image: "%[2]s", command: "sleep 1000" } }
  script:
    spec:
      cluster: exits
      namespace: %[1]s
      image: "%[2]s"
      command: "#!/bin/sh -e\nid -u; echo \"$1\"\nfalse\necho not reached"
      args: [a b]
      template: { spec: { securityContext: { runAsUser: 1234 }, containers: [{ name: main, securityContext: { readOnlyRootFilesystem: true } }] } }
  interpreter: { spec: { cluster: exits, namespace: %[1]s, image: "%[2]s", command: "#!/no/such/python3\n1" } }
  unknown: { spec: { cluster: exits, namespace: no-such, image: "%[2]s", command: "true" } }
`, namespace, kubetest.BusyboxImage))
	d := k.End(t, id)
	for task, want := range map[string]struct {
		state, reason, text string
		code                int
	}{
		"code":        {"failed", "exit_code", "7", 7},
		"script":      {"failed", "exit_code", "1", 1},
		"interpreter": {"failed", "start_failed", "/no/such/python3", -1},
		"memory":      {"killed_oom", "", "", 137},
		"image":       {"failed", "start_failed", "no-such.invalid/image:1", -1},
		"program":     {"failed", "start_failed", "/no/such/program", -1},
		"time":        {"failed", "timeout", "", -1},
		"unknown":     {"failed", "bad_spec", "has no namespace no-such", -1},
	} {
		got := d.Tasks[task]
		if got.State != want.state || want.reason != "" && got.Reason != want.reason || !strings.Contains(got.Error, want.text) || want.code >= 0 && got.Result.ExitCode != want.code {
			t.Errorf("%s is %+v", task, got)
		}
	}
	awaitWholeLog(t, k.Gateway, id, "code", "out\n")
	awaitWholeLog(t, k.Gateway, id, "script", "1234\na b\n")
	processes.Await(t, "only Jobs whose programs have ended are left", func() bool {
		return !slices.ContainsFunc(k.jobs(t, namespace, id), func(j batchv1.Job) bool {
			return !slices.Contains([]string{"code", "memory", "program", "script", "interpreter"}, j.Labels["switchyard.dev/task"])
		})
	})
}

// testCancelledJobLeavesNothing cancels a Job and checks that its last output is kept.
func testCancelledJobLeavesNothing(t *testing.T, k *kubeStack) {
	k.join(t, "cancel-1", "cancel")
	namespace := k.cluster.NewNamespace(t)
	id := k.Submit(t, fmt.Sprintf(`
name: kube-cancel
tasks:
  job:
    type: k8s_job
    spec:
      cluster: cancel
      namespace: %s
      image: %s
      command: 'trap "echo got SIGTERM; sleep 1; echo last words; exit 0" TERM; echo up; while true; do sleep 0.1; done'
`, namespace, kubetest.BusyboxImage))
	follower := start(t, "runs", "logs", "-f", id, "job", "--gateway", k.Gateway)
	follower.Line(follower.Stdout, "up")
	do(t, k.Gateway, 0, "runs", "cancel", id)
	if d := k.End(t, id); d.State != "cancelled" || d.Tasks["job"].State != "cancelled" {
		t.Errorf("the run is %+v", d)
	}
	awaitWholeLog(t, k.Gateway, id, "job", "up\ngot SIGTERM\nlast words\n")
	follower.Wait()
	if got := follower.Stdout.String(); got != "up\ngot SIGTERM\nlast words\n" {
		t.Errorf("the follower has %q", got)
	}
	processes.Await(t, "nothing is left", func() bool { return len(k.left(t, namespace)) == 0 })
}

// testJobOfTwoContainers runs a Job from a template, with a container that ends by itself and one that must be ended.
func testJobOfTwoContainers(t *testing.T, k *kubeStack) {
	k.join(t, "template-1", "template")
	namespace := k.cluster.NewNamespace(t)
	task := func(name, beside string) string {
		return fmt.Sprintf(`
  %[1]s:
    type: k8s_job
    spec:
      cluster: template
      namespace: %[3]s
      template:
        metadata: { annotations: { example.com/kind: pair } }
        spec:
          volumes: [{ name: shared, emptyDir: {} }]
          containers:
            - { name: beside, image: "%[4]s", command: [sh, -c, "echo from the side > /shared/text; mv /shared/text /shared/ready; %[2]s"], volumeMounts: [{ name: shared, mountPath: /shared }] }
            - name: main
              image: "%[4]s"
              command: [sh, -c, 'until test -e /shared/ready; do sleep 0.1; done; cat /shared/ready; echo "{\"two\":2}" > "$SWITCHYARD_OUTPUT"']
              volumeMounts: [{ name: shared, mountPath: /shared }]
`, name, beside, namespace, kubetest.BusyboxImage)
	}
	id := k.Submit(t, "name: kube-template\ntasks:"+task("short", "true")+task("endless", "exec sleep 1000"))
	d := k.End(t, id)
	for _, name := range []string{"short", "endless"} {
		if got := d.Tasks[name]; got.State != "completed" || got.Result.Output["two"] != 2.0 {
			t.Errorf("%s is %+v", name, got)
		}
		awaitWholeLog(t, k.Gateway, id, name, "from the side\n")
	}
	processes.Await(t, "only the Job that ended by itself is left", func() bool {
		jobs := k.jobs(t, namespace, id)
		return len(jobs) == 1 && jobs[0].Labels["switchyard.dev/task"] == "short"
	})
}

// testHelperBringsLargeOutputs runs a Job whose output exceeds a termination message.
func testHelperBringsLargeOutputs(t *testing.T, k *kubeStack) {
	k.join(t, "helper-1", "helper", "--kube-helper-image", helperImage)
	namespace := k.cluster.NewNamespace(t)
	id := k.Submit(t, fmt.Sprintf(`
name: kube-helper
tasks:
  job:
    type: k8s_job
    spec:
      cluster: helper
      namespace: %s
      image: "%s"
      command: |
        echo before; echo aside >&2
        { printf '{"text":"'; head -c 1048576 /dev/zero | tr '\0' x; printf '"}'; } > "$SWITCHYARD_OUTPUT"
        echo seen=8 > "$SWITCHYARD_CONTEXT_UPDATE"
        printf 'no newline'
  fails: { type: k8s_job, retry: { maxRetries: 0 }, continueOnError: true, spec: { cluster: helper, namespace: "%[1]s", image: "%[2]s", command: "echo failing; exit 9" } }
  after: { type: shell, dependsOn: [job], spec: { command: 'tr -cd x < "$SWITCHYARD_INPUT" | wc -c' } }
`, namespace, kubetest.BusyboxImage))
	d := k.End(t, id)
	stdout, _ := do(t, k.Gateway, 0, "runs", "get", id, "job", "-o", "json")
	if n := strings.Count(stdout, "x"); d.Tasks["job"].State != "completed" || n < 1<<20 {
		t.Errorf("the job is %s (%s), with %d bytes of output", d.Tasks["job"].State, d.Tasks["job"].Error, n)
	}
	if d.Context["seen"] != "8" {
		t.Errorf("the context is %v", d.Context)
	}
	if got := d.Tasks["fails"]; got.Reason != "exit_code" || got.Result.ExitCode != 9 {
		t.Errorf("the one that fails is %+v", got)
	}
	if got := strings.TrimSpace(d.Tasks["after"].Result.Stdout); len(got) != len("1048576") {
		t.Errorf("the task after it counts %q", got)
	}
	// The runtime reads the two streams of the program concurrently.
	awaitLog(t, k.Gateway, id, "job", "has the words of both streams", func(log string) bool {
		words := strings.Fields(log)
		slices.Sort(words)
		return slices.Equal(words, []string{"aside", "before", "newline", "no"})
	})
}
