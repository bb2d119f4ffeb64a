package definition

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// A sandbox requires a node capability, in addition to the author's own constraints, which take precedence.
func TestSandboxNeedsACapability(t *testing.T) {
	sandbox := &structpb.Struct{Fields: map[string]*structpb.Value{"sandbox": structpb.NewBoolValue(true)}}
	said := &v1.Constraints{NodeLabels: []string{"server"}, RequiresCapabilities: map[string]string{"gpu": "nvidia"}}
	for name, test := range map[string]struct {
		task *v1.TaskDefinition
		want map[string]string
	}{
		"none":           {&v1.TaskDefinition{Type: "shell", Spec: &structpb.Struct{}}, nil},
		"false":          {&v1.TaskDefinition{Type: "shell", Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"sandbox": structpb.NewBoolValue(false)}}}, nil},
		"another type":   {&v1.TaskDefinition{Type: "container", Spec: sandbox}, nil},
		"no constraints": {&v1.TaskDefinition{Type: "shell", Spec: sandbox}, map[string]string{"sandbox": "true"}},
		"constraints":    {&v1.TaskDefinition{Type: "shell", Spec: sandbox, Constraints: said}, map[string]string{"sandbox": "true", "gpu": "nvidia"}},
		"its own": {
			&v1.TaskDefinition{Type: "shell", Spec: sandbox, Constraints: &v1.Constraints{RequiresCapabilities: map[string]string{"sandbox": "strict"}}},
			map[string]string{"sandbox": "strict"},
		},
	} {
		c := Constraints(test.task)
		got := c.GetRequiresCapabilities()
		if len(got) != len(test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		for key, value := range test.want {
			if got[key] != value {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
		if len(c.GetNodeLabels()) != len(test.task.GetConstraints().GetNodeLabels()) {
			t.Errorf("%s: labels %v", name, c.GetNodeLabels())
		}
	}
	if len(said.GetRequiresCapabilities()) != 1 {
		t.Errorf("the definition was changed: %v", said)
	}
}
