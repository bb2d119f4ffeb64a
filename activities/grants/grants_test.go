package grants

import (
	"testing"

	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
)

// TestGrantsAreThoseOfOneNodeAndTask reads grants through another Grants than the one that put them, as another process
// does.
func TestGrantsAreThoseOfOneNodeAndTask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	given := Grant{Node: "a", Run: "ci-0k", Chain: "c1", Task: "build"}
	reader := New(storetest.Open(t, dir))
	has := func(one Grant) bool {
		t.Helper()
		ok, err := reader.Has(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	hasRun := func(node, run string) bool {
		t.Helper()
		ok, err := reader.HasRun(t.Context(), node, run)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if has(given) || hasRun("a", "ci-0k") {
		t.Error("a grant that was not put")
	}
	if err := New(storetest.Open(t, dir)).Put(t.Context(), given, given, Grant{Node: "b", Run: "ci-0k", Chain: "c1", Task: "a__0x2f__"}); err != nil {
		t.Fatal(err)
	}
	if !has(given) || !hasRun("a", "ci-0k") || !has(Grant{"b", "ci-0k", "c1", "a__0x2f__"}) {
		t.Error("the grant is not found")
	}
	for _, other := range []Grant{
		{"b", "ci-0k", "c1", "build"}, {"a", "ci-0k1", "c1", "build"}, {"a", "ci-0k", "c2", "build"}, {"a", "ci-0k", "c1", "build-2"}, {"", "ci-0k", "c1", "build"},
	} {
		if has(other) {
			t.Errorf("%v is granted", other)
		}
	}
	if hasRun("a", "ci-0k1") || hasRun("", "ci-0k") || hasRun("a-1", "ci-0k") {
		t.Error("another run, or node, is granted")
	}
}

// TestGrantsGoWithTheirRun checks that garbage collection of a run removes its grants.
func TestGrantsGoWithTheirRun(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, t.TempDir())
	if err := New(s).Put(t.Context(), Grant{"a", "ci-0k", "c1", "build"}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteRun(t.Context(), "ci-0k"); err != nil {
		t.Fatal(err)
	}
	for key, err := range s.Keys(t.Context(), storekey.RunPrefix("ci-0k")) {
		t.Errorf("%s is left, %v", key, err)
	}
}
