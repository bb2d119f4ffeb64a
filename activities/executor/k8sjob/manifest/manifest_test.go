package manifest

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"switchyard/activities/executor"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/podspec"
)

func template(t *testing.T, text string) (*v1.K8SJobSpec, *corev1.PodTemplateSpec) {
	t.Helper()
	spec := &v1.K8SJobSpec{}
	if err := protojson.Unmarshal([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	merged, problems := podspec.Template(spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return spec, merged
}

func attempt() executor.Attempt {
	cores := 1.5
	return executor.Attempt{
		Identity: executor.Identity{Run: "nightly-7", Chain: "c0ffee", Generation: 1, Task: "Train.model", Index: 2, Attempt: 3, Claim: 9, Node: "worker-1", Fleet: "lab"},
		Env: map[string]string{
			"SWITCHYARD_INPUT": "/n/input.json", "SWITCHYARD_OUTPUT": "/n/output", "SWITCHYARD_CONTEXT_UPDATE": "/n/update", "SWITCHYARD_CHECKPOINT": "/n/checkpoint",
			"SWITCHYARD_SHARED_DIR": "/n/shared", "SWITCHYARD_LOCAL_TEMP_DIR": "/n/temp", "SWITCHYARD_RUN_ID": "nightly-7", "PRICE": "$(HOME) $5", "TOKEN": "s3cret", "a b": "odd",
		},
		Secrets: executor.Secrets{Env: map[string]string{"TOKEN": "env:TOKEN", "a b": "env:B", "ABSENT": "env:C"}},
		Remote:  executor.Remote{Timeout: 90*time.Second + 1, Resources: &v1.Resources{Cores: &cores, MemoryMb: 512, Gpus: 1}}, Ending: executor.Ending{Grace: 10 * time.Second},
	}
}

func TestBuildCreatesJobAndSecret(t *testing.T) {
	const everything = `{"namespace": "ml", "image": "alpine", "command": ["train"], "args": ["--fast"], "labels": {"team": "a"}, "annotations": {"note": "b"},
		"template": {"metadata": {"labels": {"app": "x"}}, "spec": {"initContainers": [{"name": "prepare", "image": "i"}], "volumes": [{"name": "v", "emptyDir": {}}],
		"containers": [{"name": "side", "image": "s"}, {"name": "main", "env": [{"name": "ID", "value": "$(SWITCHYARD_RUN_ID)"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}], "resources": {"limits": {"ephemeral-storage": "1Gi"}}}]}}}`
	for _, test := range []struct {
		name, spec string
		attempt    executor.Attempt
		options    Options
	}{
		{"least", `{"image": "alpine"}`, executor.Attempt{Identity: executor.Identity{Run: "r", Task: "t", Index: -1}}, Options{Namespace: "default", Holder: "n/1"}},
		{"plain", everything, attempt(), Options{Namespace: "default", Holder: "worker-1/x7", Input: []byte(`{"a":1}`)}},
		{"helper", everything, attempt(), Options{Namespace: "default", Holder: "worker-1/x7", Input: []byte(`{"a":1}`), HelperImage: "switchyard:1", Frame: "n0nce"}},
		{"script", `{"image": "python", "command": "#!/usr/bin/env python3\nprint('$a')\n", "args": ["x"]}`, executor.Attempt{Identity: executor.Identity{Run: "r", Task: "t", Index: -1}}, Options{Namespace: "default", Holder: "n/1", HelperImage: "switchyard:1", Frame: "n0nce"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, merged := template(t, test.spec)
			before := merged.DeepCopy()
			job, secret, err := Build(test.attempt, merged, spec, test.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, merged); diff != "" {
				t.Errorf("the template was changed:\n%s", diff)
			}
			got, err := json.MarshalIndent([]any{secret, job}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "testdata/"+test.name+".golden.json", string(got)+"\n")
			if id, ok := Identity(job.Annotations); !ok || Name(id) != job.Name {
				t.Errorf("identity %+v, of %s", id, job.Name)
			}
			for name, value := range test.attempt.Secrets.Env {
				if secretValue := test.attempt.Env[name]; secretValue != "" && strings.Contains(string(mustJSON(t, job)), secretValue) {
					t.Errorf("the Job has the value of %s, %s", name, value)
				}
			}
		})
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestBuildRefusesWhatCannotStart(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		change     func(a *executor.Attempt, o *Options)
		want       string
	}{
		{"a large input", `{"image": "i"}`, func(a *executor.Attempt, o *Options) {
			a.Env["TOKEN"], o.Input = strings.Repeat("x", 1<<19), make([]byte, 1<<19)
		}, "k8s_job spec: input, script and secrets of the task have 1048579 bytes (input: 524288); a Kubernetes Secret holds 1032192 (let upstream tasks write large data to the store or a volume and pass its location)"},
		{"a helper without a command", `{"image": "i", "args": ["x"]}`, func(_ *executor.Attempt, o *Options) { o.HelperImage = "h" },
			"k8s_job spec: spec.command is required on nodes with a helper image (set it to the ENTRYPOINT and CMD of the image)"},
		{"a variable that the task also sets", `{"image": "i", "env": [{"name": "PRICE"}], "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}}}`, nil,
			`k8s_job spec: spec.env[0].name is "PRICE", which the task also sets (leave it out there, or in env and secretEnv of the task); spec.template.spec.containers[0].resources.limits.cpu and resources.cores of the task both set "cpu" (leave one of them out)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, merged := template(t, test.spec)
			a, o := attempt(), Options{}
			a.Env = maps.Clone(a.Env)
			if test.change != nil {
				test.change(&a, &o)
			}
			_, _, err := Build(a, merged, spec, o)
			if start := executor.AsStartError(err); start == nil || !start.BadSpec || err.Error() != test.want {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestOwnDeletesTheSecretWithItsJob(t *testing.T) {
	secret := &corev1.Secret{}
	Own(secret, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "u"}})
	want := []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "u"}}
	if diff := cmp.Diff(want, secret.OwnerReferences); diff != "" {
		t.Error(diff)
	}
}

func identities() *rapid.Generator[executor.Identity] {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aA.\-]{1,80}`))
	return rapid.Custom(func(t *rapid.T) executor.Identity {
		return executor.Identity{
			Run: text.Draw(t, "run"), Chain: text.Draw(t, "chain"), Generation: rapid.Int32Range(0, 2).Draw(t, "generation"), Task: text.Draw(t, "task"),
			Index: rapid.Int32Range(-1, 2).Draw(t, "index"), Attempt: rapid.Int32Range(0, 2).Draw(t, "attempt"), Fleet: text.Draw(t, "fleet"),
		}
	})
}

func TestNamesAreUniqueDNSLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := identities().Draw(t, "a"), identities().Draw(t, "b")
		if faults := validation.IsDNS1123Label(Name(a)); len(faults) > 0 {
			t.Fatalf("%q: %v", Name(a), faults)
		}
		c := a
		c.Node, c.Claim, c.Fleet = "other", 7, "other"
		if Name(c) != Name(a) {
			t.Fatalf("another dispatch: %q, %q", Name(a), Name(c))
		}
		b.Fleet = a.Fleet
		if (a == b) != (Name(a) == Name(b)) {
			t.Fatalf("%+v and %+v: %q, %q", a, b, Name(a), Name(b))
		}
		for _, value := range labels(a) {
			if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
				t.Fatalf("%q: %v", value, faults)
			}
		}
	})
}

func TestNameIsStable(t *testing.T) {
	for want, id := range map[string]executor.Identity{
		"sy-nightly-7-train-model-2-":           attempt().Identity,
		"sy-r-t-":                               {Run: "r", Task: "t", Index: -1},
		"sy-x-":                                 {Run: "ä", Index: -1},
		"sy-nightly-build-of-everything-abcde-": {Run: "Nightly..build OF everything-abcdefghijklmn", Task: "t", Index: -1},
	} {
		got := Name(id)
		if prefix := got[:len(got)-26]; prefix != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := Name(executor.Identity{Run: "r", Task: "t", Index: -1}); got != stableName {
		t.Errorf("name %q: a node of another version would not find the attempts of this one", got)
	}
}

// stableName is the name of the first attempt of task t of run r, which must stay the same in every version.
const stableName = "sy-r-t-juuoc2lizubrrgvvhlwkvcw6ve"

func TestIdentityRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := identities().Draw(t, "id")
		got, ok := Identity(map[string]string{AnnotationIdentity: identityText(id)})
		if isWhole := id.Run != "" && id.Task != ""; ok != isWhole || ok && got != id {
			t.Fatalf("%+v became %+v, %v", id, got, ok)
		}
	})
	for _, text := range []string{"", "{}", "null", "x", `{"run": 5}`} {
		if got, ok := Identity(map[string]string{AnnotationIdentity: text}); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestClaimRoundTrips(t *testing.T) {
	if n, holder, ok := ParseClaim(FormatClaim(12, "worker-1/x7/y")); n != 12 || holder != "worker-1/x7/y" || !ok {
		t.Errorf("%d, %q, %v", n, holder, ok)
	}
	for _, text := range []string{"", "5", "5/", "/a", "x/a", "+5/a", "05/a", "99999999999/a"} {
		if n, holder, ok := ParseClaim(text); ok {
			t.Errorf("%q: %d, %q", text, n, holder)
		}
	}
}
