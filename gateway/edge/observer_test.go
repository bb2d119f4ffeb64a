package edge

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	v1 "switchyard/proto/switchyard/v1"
)

func TestEveryCallDeclaresItsEffect(t *testing.T) {
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			effect := v1.RulesOf(m).GetEffect()
			switch {
			case effect == v1.Effect_EFFECT_UNSPECIFIED:
				t.Errorf("%s has no effect in its rules", m.FullName())
			case effect == v1.Effect_EFFECT_WRITE && isSafe(m):
				t.Errorf("%s writes, and is declared to have no side effects", m.FullName())
			case effect == v1.Effect_EFFECT_WRITE && m.IsStreamingServer():
				t.Errorf("%s is a stream that writes, which an observer does not refuse", m.FullName())
			}
		}
	}
}

// isSafe reports whether a method is declared to have no side effects.
func isSafe(m protoreflect.MethodDescriptor) bool {
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}
