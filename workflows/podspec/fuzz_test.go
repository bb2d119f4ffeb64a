package podspec

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// FuzzTemplate checks that an accepted template means the same when it is given in the form that Kubernetes writes.
func FuzzTemplate(f *testing.F) {
	f.Add(`{"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "i", "ports": [{"containerPort": 80}]}]}}`)
	f.Add(`{"spec": {"containers": [{"resources": {"limits": {"cpu": 0.5}}, "image": "${{ x }}"}], "securityContext": {"runAsUser": "${{ 1 }}"}}}`)
	f.Add(`{"spec": {"volumes": [null, {"emptyDir": {}, "name": "v"}], "containers": {}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		given := &structpb.Struct{}
		if protojson.Unmarshal([]byte(text), given) != nil {
			t.Skip()
		}
		template, problems := Template(&v1.K8SJobSpec{Template: given})
		if len(problems) > 0 || strings.Contains(given.String(), "${{") { // values that are not known yet are left out
			return
		}
		written, err := json.Marshal(template)
		if err != nil {
			t.Fatal(err)
		}
		again := &structpb.Struct{}
		if err := protojson.Unmarshal(written, again); err != nil {
			t.Fatal(err)
		}
		second, problems := Template(&v1.K8SJobSpec{Template: again})
		if len(problems) > 0 {
			t.Fatalf("%s: %v", written, problems)
		}
		if rewritten, err := json.Marshal(second); err != nil || string(rewritten) != string(written) {
			t.Errorf("%s became %s, error %v", written, rewritten, err)
		}
	})
}
