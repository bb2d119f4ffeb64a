package store_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
)

func TestAwaitMessageWaitsForWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := storekey.Result("ci-0k", 0, "build", 0)
	began := make(chan struct{})
	go func() {
		<-began
		// Most likely this is after the first look; the test holds either way.
		time.Sleep(20 * time.Millisecond)
		if err := s.PutMessage(t.Context(), key, wrapperspb.String("here")); err != nil {
			t.Error(err)
		}
	}()
	close(began)
	var got wrapperspb.StringValue
	if err := s.AwaitMessage(t.Context(), key, &got, time.Minute); err != nil || got.GetValue() != "here" {
		t.Fatalf("%q, %v", got.GetValue(), err)
	}
	if err := s.AwaitMessage(t.Context(), storekey.Result("ci-0k", 0, "other", 0), &got, 100*time.Millisecond); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("a value that nobody stores: %v", err)
	}
}
