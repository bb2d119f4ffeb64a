package graph

import (
	"slices"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestByDepthPutsParentsFirst(t *testing.T) {
	tasks := map[string]*v1.Task{
		"a": {DependsOn: []string{"z", "unknown"}}, "b": {DependsOn: []string{"a", "y"}}, "y": {}, "z": {}, "c": {DependsOn: []string{"z"}},
	}
	if got, want := ByDepth(tasks), []string{"y", "z", "a", "c", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
