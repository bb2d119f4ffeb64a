package podspec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"

	v1 "switchyard/proto/switchyard/v1"
)

func parse(t *testing.T, text string) *v1.K8SJobSpec {
	t.Helper()
	spec := &v1.K8SJobSpec{}
	if err := protojson.Unmarshal([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func texts(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(path(p.Path).String() + ": " + p.String() + "\n")
	}
	return b.String()
}

func TestTemplateMergesTheFieldsOfTheSpec(t *testing.T) {
	for _, test := range []struct{ name, spec, want string }{
		{"a shell", `{"image": "alpine", "command": "make all"}`,
			`{"spec": {"containers": [{"name": "main", "image": "alpine", "command": ["sh", "-c", "make all"]}]}}`},
		{"a shell with arguments, which are $1 and so on", `{"image": "alpine", "command": "echo $1", "args": ["a"]}`,
			`{"spec": {"containers": [{"name": "main", "image": "alpine", "command": ["sh", "-c", "echo $$1", "sh"], "args": ["a"]}]}}`},
		{"a shell for several lines", `{"image": "alpine", "command": "a\nb"}`,
			`{"spec": {"containers": [{"name": "main", "image": "alpine", "command": ["sh", "-ec", "a\nb"]}]}}`},
		{"an interpreter", `{"image": "alpine", "command": "#!/usr/bin/env -S $X -u\n1", "args": ["$(a)"]}`,
			`{"spec": {"containers": [{"name": "main", "image": "alpine", "command": ["/usr/bin/env", "-S $$X -u", "/switchyard/in/script"], "args": ["$(a)"]}]}}`},
		{"a command that is too long for an argument", `{"image": "alpine", "command": "` + strings.Repeat("x", 200_000) + `", "args": ["a"]}`,
			`{"spec": {"containers": [{"name": "main", "image": "alpine", "command": ["sh", "-c", ". '/switchyard/in/script'", "sh"], "args": ["a"]}]}}`},
		{"another shell", `{"image": "alpine", "command": "echo $1", "shell": ["zsh", "-c"], "args": ["a"]}`,
			`{"spec": {"containers": [{"name": "main", "image": "alpine", "command": ["zsh", "-c", "echo $$1", "zsh"], "args": ["a"]}]}}`},
		{"a list", `{"image": "alpine", "command": ["make", "all"], "args": ["-j"]}`,
			`{"spec": {"containers": [{"name": "main", "image": "alpine", "command": ["make", "all"], "args": ["-j"]}]}}`},
		{"the image's own program", `{"image": "alpine"}`, `{"spec": {"containers": [{"name": "main", "image": "alpine"}]}}`},
		{"the only container, which keeps its name", `{"command": ["x"], "template": {"spec": {"containers": [{"name": "app", "image": "i", "tty": true}]}}}`,
			`{"spec": {"containers": [{"name": "app", "image": "i", "command": ["x"], "tty": true}]}}`},
		{"the container main", `{"image": "i", "template": {"spec": {"containers": [{"name": "side", "image": "s"}, {"name": "main"}]}}}`,
			`{"spec": {"containers": [{"name": "side", "image": "s"}, {"name": "main", "image": "i"}]}}`},
		{"everything", `{
			"image": "i", "labels": {"a": "1"}, "annotations": {"n": "x y"}, "serviceAccount": "robot", "nodeSelector": {"disk": "nvme"},
			"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
			"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
			"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "d"}}, {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}],
			"volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": true}], "imagePullSecrets": ["own"],
			"template": {"metadata": {"labels": {"b": "2"}, "annotations": {"m": ""}}, "spec": {
				"restartPolicy": "Never", "nodeSelector": {"zone": "a"}, "imagePullSecrets": [{"name": "theirs"}], "priorityClassName": "low",
				"securityContext": {"runAsUser": 1000}, "volumes": [{"name": "cache", "emptyDir": {}}],
				"containers": [{"name": "main", "env": [{"name": "B", "value": "b"}], "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
					"resources": {"limits": {"ephemeral-storage": "2Gi", "cpu": 2}}, "livenessProbe": {"httpGet": {"port": 80}}}]}}}`,
			`{"metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"n": "x y", "m": ""}}, "spec": {
				"restartPolicy": "Never", "serviceAccountName": "robot", "nodeSelector": {"disk": "nvme", "zone": "a"},
				"imagePullSecrets": [{"name": "theirs"}, {"name": "own"}], "priorityClassName": "low", "securityContext": {"runAsUser": 1000},
				"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
				"volumes": [{"name": "cache", "emptyDir": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": "d"}}, {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}],
				"containers": [{"name": "main", "image": "i",
					"env": [{"name": "B", "value": "b"}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
					"volumeMounts": [{"name": "cache", "mountPath": "/cache"}, {"name": "data", "mountPath": "/data", "readOnly": true}],
					"resources": {"limits": {"ephemeral-storage": "2Gi", "cpu": "2"}}, "livenessProbe": {"httpGet": {"port": 80}}}]}}`},
		{"what is not known yet", `{"image": "${{ parent.a.output.image }}", "serviceAccount": "A ${{ 1 }}", "labels": {"a": "${{ 1 }} b"},
			"template": {"spec": {"securityContext": {"runAsUser": "${{ 1 }}"}, "containers": [{"name": "main", "resources": {"limits": {"cpu": "${{ 2 }}"}}, "ports": "${{ 3 }}"}]}}}`,
			`{"metadata": {"labels": {"a": "${{ 1 }} b"}}, "spec": {"serviceAccountName": "A ${{ 1 }}", "securityContext": {},
				"containers": [{"name": "main", "image": "${{ parent.a.output.image }}", "resources": {}}]}}`},
		{"an image that may come", `{"template": {"spec": {"containers": "${{ parent.a.output.containers }}"}}}`, `{"spec": {"containers": [{"name": "main"}]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, problems := Template(parse(t, test.spec))
			if len(problems) > 0 {
				t.Errorf("problems:\n%s", texts(problems))
			}
			want := &corev1.PodTemplateSpec{}
			if err := json.Unmarshal([]byte(test.want), want); err != nil {
				t.Fatal(err)
			}
			asJSON := cmp.Transformer("json", func(t *corev1.PodTemplateSpec) (v any) {
				data, _ := json.Marshal(t)
				_ = json.Unmarshal(data, &v)
				return v
			})
			if diff := cmp.Diff(want, got, asJSON); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTemplateReportsEveryProblemAtItsPlace(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, test := range []struct{ name, spec, want string }{
		{"no image", `{}`, `spec.image: spec.image is missing (write image: "ubuntu:22.04", or name one in spec.template)`},
		{"a typo", `{"image": "i", "template": {"spec": {"containers": [{"name": "main", "imagee": "x", "ports": [{"containerPort": "80"}], "workingDir": 5}], "xyzzy": 1}}}`, `
spec.template.spec.containers[0].imagee: spec.template.spec.containers[0] has no field "imagee" (did you mean image?)
spec.template.spec.containers[0].ports[0].containerPort: spec.template.spec.containers[0].ports[0].containerPort is the string "80"; it must be a whole number
spec.template.spec.containers[0].workingDir: spec.template.spec.containers[0].workingDir is the number 5; it must be a string (write it in quotes: "5")
spec.template.spec.xyzzy: spec.template.spec has no field "xyzzy" (` + "`kubectl explain pod.spec` lists the fields)"},
		{"no template of a pod", `{"image": "i", "template": {"apiVersion": "v1", "containers": [], "spec": {"template": {}, "containers": {"name": "main"}}}}`, `
spec.template.apiVersion: spec.template has no field "apiVersion" (leave it out; a template has metadata and spec only)
spec.template.containers: spec.template has no field "containers" (containers belongs in spec.template.spec)
spec.template.spec.containers: spec.template.spec.containers is a mapping; it must be a list
spec.template.spec.template: spec.template.spec has no field "template" (the template describes a pod, not a Job: write the content of the Job's spec.template)`},
		{"values of wrong kinds", `{"image": "i", "command": 5, "env": [{"name": "A", "value": 1}], "tolerations": [{"key": "a", "operator": "exists", "tolerationSeconds": 1.5}],
			"volumes": [{"name": "a", "emptyDir": {"sizeLimit": "much"}}, {"name": "b", "hostpath": {"path": "/"}}],
			"template": {"spec": {"hostNetwork": "yes", "containers": [{"name": "main", "livenessProbe": {"tcpSocket": {"port": [1]}}}, null]}}}`, `
spec.template.spec.containers[0].livenessProbe.tcpSocket.port: spec.template.spec.containers[0].livenessProbe.tcpSocket.port is a list; it must be a number or a name
spec.template.spec.containers[1]: spec.template.spec.containers[1] is empty; it must be a value (leave the item out)
spec.template.spec.hostNetwork: spec.template.spec.hostNetwork is the string "yes"; it must be true or false
spec.command: spec.command is the number 5; it must be a string for a shell, or a list of strings
spec.env[0].value: spec.env[0].value is the number 1; it must be a string (write it in quotes: "1")
spec.volumes[0].emptyDir.sizeLimit: spec.volumes[0].emptyDir.sizeLimit is the string "much"; it must be a quantity (such as 2, "500m" or "4Gi")
spec.volumes[1].hostpath: spec.volumes[1] has no field "hostpath" (did you mean hostPath?)
spec.tolerations[0].tolerationSeconds: spec.tolerations[0].tolerationSeconds is the number 1.5; it must be a whole number
spec.tolerations[0].operator: spec.tolerations[0].operator is "exists"; it must be Equal or Exists (did you mean Exists?)`},
		{"conflicts", `{"image": "i", "command": ["x"], "args": ["y"], "serviceAccount": "s", "labels": {"l": "1"}, "annotations": {"a": "1"}, "nodeSelector": {"n": "1"},
			"env": [{"name": "E"}], "volumes": [{"name": "v", "emptyDir": {}}], "volumeMounts": [{"name": "v", "mountPath": "/v"}], "imagePullSecrets": ["p", "p"],
			"template": {"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}}, "spec": {"serviceAccountName": "s", "nodeSelector": {"n": "1"}, "volumes": [{"name": "v", "emptyDir": {}}],
			"containers": [{"name": "main", "image": "i", "command": ["x"], "args": ["y"], "env": [{"name": "E"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}}}`, `
spec.image: spec.image and spec.template.spec.containers[0].image both set the image of the program (leave one of them out)
spec.command: spec.command and spec.template.spec.containers[0].command both set the command of the program (leave one of them out)
spec.args: spec.args and spec.template.spec.containers[0].args both set the arguments of the program (leave one of them out)
spec.env[0].name: spec.env[0].name and spec.template.spec.containers[0].env[0].name both set the variable "E" (leave one of them out)
spec.volumes[0].name: spec.volumes[0].name and spec.template.spec.volumes[0].name both set the volume "v" (leave one of them out)
spec.volumeMounts[0].mountPath: spec.volumeMounts[0].mountPath and spec.template.spec.containers[0].volumeMounts[0].mountPath both set the path "/v" (leave one of them out)
spec.serviceAccount: spec.serviceAccount and spec.template.spec.serviceAccountName both set the service account of the pod (leave one of them out)
spec.nodeSelector.n: spec.nodeSelector.n and spec.template.spec.nodeSelector.n both set the label that a node must have "n" (leave one of them out)
spec.imagePullSecrets[1]: spec.imagePullSecrets[1] and spec.imagePullSecrets[0] both set the secret "p" (leave one of them out)
spec.labels.l: spec.labels.l and spec.template.metadata.labels.l both set the label "l" (leave one of them out)
spec.annotations.a: spec.annotations.a and spec.template.metadata.annotations.a both set the annotation "a" (leave one of them out)`},
		{"what Switchyard sets", `{"image": "i", "labels": {"switchyard.dev/run": "x", "app.kubernetes.io/managed-by": "me"}, "env": [{"name": "SWITCHYARD_INPUT"}, {"name": "SWITCHYARD_TOKEN"}],
			"volumes": [{"name": "switchyard-in", "emptyDir": {}}], "volumeMounts": [{"name": "switchyard-in", "mountPath": "/switchyard/x"}],
			"template": {"metadata": {"name": "x", "namespace": "y"}, "spec": {"restartPolicy": "OnFailure", "activeDeadlineSeconds": 5, "terminationGracePeriodSeconds": 5, "initContainers": [{"name": "switchyard-helper", "image": "i"}],
			"containers": [{"name": "main", "terminationMessagePath": "/x", "terminationMessagePolicy": "File", "restartPolicy": "Never"}]}}}`, `
spec.template.metadata.name: spec.template.metadata.name does not apply to the pod of a Job (leave it out; a template has labels and annotations)
spec.template.metadata.namespace: spec.template.metadata.namespace does not apply to the pod of a Job (write it in spec.namespace)
spec.template.spec.restartPolicy: spec.template.spec.restartPolicy is "OnFailure"; it must be Never, because an attempt runs once (leave it out; use retry of the task)
spec.template.spec.activeDeadlineSeconds: spec.template.spec.activeDeadlineSeconds is set by Switchyard (leave it out; timeout of the task limits its attempts)
spec.template.spec.terminationGracePeriodSeconds: spec.template.spec.terminationGracePeriodSeconds is set by Switchyard (leave it out; a stopped attempt has the same grace period as on a node)
spec.template.spec.initContainers[0].name: spec.template.spec.initContainers[0].name is "switchyard-helper"; names of containers that begin with switchyard- are reserved for Switchyard (choose another name)
spec.template.spec.containers[0].terminationMessagePath: spec.template.spec.containers[0].terminationMessagePath is set by Switchyard (leave it out; the output of the task is what the program writes to $SWITCHYARD_OUTPUT)
spec.template.spec.containers[0].terminationMessagePolicy: spec.template.spec.containers[0].terminationMessagePolicy is set by Switchyard (leave it out; the output of the task is what the program writes to $SWITCHYARD_OUTPUT)
spec.template.spec.containers[0].restartPolicy: spec.template.spec.containers[0].restartPolicy is set by Switchyard (leave it out; use retry of the task)
spec.env[0].name: spec.env[0].name is "SWITCHYARD_INPUT"; Switchyard sets the variables that begin with SWITCHYARD_ (choose another name; only SWITCHYARD_GATEWAY and SWITCHYARD_TOKEN may be set)
spec.volumes[0].name: spec.volumes[0].name is "switchyard-in"; names of volumes that begin with switchyard- are reserved for Switchyard (choose another name)
spec.volumeMounts[0].mountPath: spec.volumeMounts[0].mountPath is "/switchyard/x"; Switchyard keeps its files in /switchyard (choose another path)
spec.labels["app.kubernetes.io/managed-by"]: label app.kubernetes.io/managed-by is reserved for Switchyard (choose another name; names with switchyard.dev/ and app.kubernetes.io/managed-by are reserved)
spec.labels["switchyard.dev/run"]: label switchyard.dev/run is reserved for Switchyard (choose another name; names with switchyard.dev/ and app.kubernetes.io/managed-by are reserved)`},
		{"names", `{"image": "A b", "namespace": "` + long + `", "serviceAccount": "A_b", "labels": {"a b": "c", "d": "` + long + `"}, "annotations": {"Team/ok": "any text"},
			"env": [{"name": "A=B"}], "volumes": [{"name": "Data", "emptyDir": {}}], "volumeMounts": [{"name": "date", "mountPath": "data"}]}`, `
spec.env[0].name: spec.env[0].name is "A=B", which is not a valid variable name (printable ASCII characters except '=')
spec.volumes[0].name: spec.volumes[0].name is "Data", which is not a valid volume name (at most 63 of a-z, 0-9 and '-', the first and last a letter or digit)
spec.volumeMounts[0].mountPath: spec.volumeMounts[0].mountPath is "data", which is not an absolute path (it is the path of the volume in the container)
spec.volumeMounts[0].name: spec.volumeMounts[0].name is "date", but there is no such volume (did you mean Data?)
spec.namespace: spec.namespace is "` + long[:60] + `...", which is not a valid namespace (at most 63 of a-z, 0-9 and '-', the first and last a letter or digit)
spec.serviceAccount: spec.serviceAccount is "A_b", which is not a valid service account name (at most 253 of a-z, 0-9, '-' and '.', the first and last a letter or digit)
spec.image: spec.image is "A b", which is not a valid image name (such as "ubuntu:22.04"; names are lower case)
spec.labels["a b"]: label "a b" is not allowed in Kubernetes (at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit, such as "team"; a domain and '/' may precede them, such as "example.com/team")
spec.labels.d: spec.labels.d is "` + long[:60] + `...", which is not a valid label value (at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit)`},
		{"no main container", `{"image": "i", "template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}`,
			`spec.template.spec.containers: spec.template.spec.containers has 2 containers, but none is named "main" (name the one that runs the task "main"; the others may be initContainers with restartPolicy Always, which end with it)`},
		{"an empty command", `{"image": "i", "command": [], "env": [{"value": "x"}], "volumeMounts": [{"mountPath": "/a"}]}`, `
spec.command: spec.command is empty (leave it out to run the image's own program)
spec.env[0].name: spec.env[0].name is missing
spec.volumeMounts[0].name: spec.volumeMounts[0].name is missing (it is the name of a volume)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, problems := Template(parse(t, test.spec))
			if diff := cmp.Diff(strings.TrimSpace(test.want)+"\n", texts(problems)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTaskAndSpecMustNotSetTheSameField(t *testing.T) {
	spec := parse(t, `{"env": [{"name": "B"}], "template": {"spec": {"containers": [{"name": "x", "image": "i", "env": [{"name": "A"}],
		"resources": {"limits": {"cpu": 1}, "requests": {"memory": "1Gi", "ephemeral-storage": "1Gi"}}}]}}}`)
	template, problems := Template(spec)
	if len(problems) > 0 {
		t.Fatal(texts(problems))
	}
	cores := 1.5
	got := texts(TaskProblems(spec, template, []string{"A", "B", "C"}, &v1.Resources{Cores: &cores, MemoryMb: 10, Gpus: 1}))
	want := `spec.template.spec.containers[0].env[0].name: spec.template.spec.containers[0].env[0].name is "A", which the task also sets (leave it out there, or in env and secretEnv of the task)
spec.env[0].name: spec.env[0].name is "B", which the task also sets (leave it out there, or in env and secretEnv of the task)
spec.template.spec.containers[0].resources.limits.cpu: spec.template.spec.containers[0].resources.limits.cpu and resources.cores of the task both set "cpu" (leave one of them out)
spec.template.spec.containers[0].resources.requests.memory: spec.template.spec.containers[0].resources.requests.memory and resources.memoryMb of the task both set "memory" (leave one of them out)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestResourcesAreThoseOfTheTask(t *testing.T) {
	cores, none := 0.5, 0.0
	for _, test := range []struct {
		of   *v1.Resources
		want string
	}{
		{nil, `{}`},
		{&v1.Resources{Cores: &none}, `{}`},
		{&v1.Resources{Cores: &cores, MemoryMb: 512, Gpus: 2}, `{"cpu":"500m","memory":"512Mi","nvidia.com/gpu":"2"}`},
	} {
		if got, err := json.Marshal(Resources(test.of)); err != nil || string(got) != test.want {
			t.Errorf("%v: %s, error %v", test.of, got, err)
		}
	}
}
