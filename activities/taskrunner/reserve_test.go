package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// countedRoom is a room with a number of places.
type countedRoom struct{ free int }

func (r *countedRoom) Acquire(context.Context, *historyv1.ExecuteRequest) (func(), error) {
	if r.free == 0 {
		return nil, errors.New("the room is full")
	}
	r.free--
	return func() { r.free++ }, nil
}

func (r *countedRoom) Restore(*historyv1.ExecuteRequest, time.Time) (func(), error) {
	return nil, errors.New("nothing is restored")
}

func memberRequest(rank int32) *historyv1.ExecuteRequest {
	return &historyv1.ExecuteRequest{RunId: "run", Task: "train", Type: v1.TypeShell, Claim: 1, Index: proto.Int32(rank), Count: 2, Incarnation: "this", Gang: &historyv1.Gang{}}
}

// TestReservedPlaceIsTheAttempts checks that a node keeps the place of a member, with a free port for rank 0, until its attempt
// comes or the run gives the place up, and that it says why it has none.
func TestReservedPlaceIsTheAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	room := &countedRoom{free: 1}
	b.Room, b.Incarnation, b.Host = room, "this", "10.1.2.3"
	first, err := b.Reserve(t.Context(), memberRequest(0))
	if err != nil || first.GetRefused() != "" || first.GetHost() != "10.1.2.3" || first.GetPort() == 0 || room.free != 0 {
		t.Fatalf("%v, %v with %d places left", first, err, room.free)
	}
	if again, err := b.Reserve(t.Context(), memberRequest(0)); err != nil || !proto.Equal(again, first) {
		t.Errorf("the same request again is answered %v, %v", again, err)
	}
	address := fmt.Sprintf(":%d", first.GetPort())
	if l, err := net.Listen("tcp", address); err == nil {
		l.Close()
		t.Error("another program can get the port")
	}
	if full, err := b.Reserve(t.Context(), memberRequest(1)); err != nil || full.GetRefused() != v1.ReasonNoRoom || full.GetError() != "the room is full" {
		t.Errorf("a full node answers %v, %v", full, err)
	}
	other := memberRequest(1)
	other.Incarnation = "earlier"
	if old, err := b.Reserve(t.Context(), other); err != nil || old.GetRefused() != v1.ReasonIncarnation {
		t.Errorf("another worker answers %v, %v", old, err)
	}
	release, err := b.acquire(t.Context(), b.newAttempt(delivery{}, memberRequest(0)))
	if err != nil || room.free != 0 {
		t.Fatalf("the attempt gets no place: %v", err)
	}
	if l, err := net.Listen("tcp", address); err != nil {
		t.Errorf("the attempt cannot get its port: %v", err)
	} else {
		l.Close()
	}
	if release(); room.free != 1 {
		t.Error("the place is not given back")
	}
	if p, err := b.Reserve(t.Context(), memberRequest(1)); err != nil || p.GetPort() != 0 || room.free != 0 {
		t.Errorf("rank 1 gets %v, %v", p, err)
	}
	undo := memberRequest(1)
	undo.Stop = true
	for range 2 {
		if _, err := b.Reserve(t.Context(), undo); err != nil || room.free != 1 {
			t.Errorf("the place is not given up: %v", err)
		}
	}
	if res, err := b.Reserve(t.Context(), memberRequest(1)); err != nil || res.GetRefused() != v1.ReasonGang || room.free != 1 {
		t.Errorf("a request that was overtaken is answered %v, %v", res, err)
	}
	b.BeginDrain(time.Time{}, "repair")
	next := memberRequest(1)
	next.Claim++
	if res, err := b.Reserve(t.Context(), next); err != nil || res.GetRefused() != v1.ReasonDraining || !strings.Contains(res.GetError(), "repair") {
		t.Errorf("a draining node answers %v, %v", res, err)
	}
}

// heldRoom is a room whose only place is free once open is closed.
type heldRoom struct {
	countedRoom
	asked, open chan struct{}
}

func (r *heldRoom) Acquire(ctx context.Context, req *historyv1.ExecuteRequest) (func(), error) {
	close(r.asked)
	<-r.open
	return r.countedRoom.Acquire(ctx, req)
}

// TestPlaceIsGivenUpWhileItIsAwaited checks that a node keeps no place that the run has given up meanwhile.
func TestPlaceIsGivenUpWhileItIsAwaited(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	room := &heldRoom{countedRoom: countedRoom{free: 1}, asked: make(chan struct{}), open: make(chan struct{})}
	b.Room, b.Incarnation = room, "this"
	answered := make(chan *historyv1.ReserveResponse)
	go func() {
		res, _ := b.Reserve(context.WithoutCancel(t.Context()), memberRequest(0))
		answered <- res
	}()
	<-room.asked
	undo := memberRequest(0)
	undo.Stop = true
	if _, err := b.Reserve(t.Context(), undo); err != nil {
		t.Fatal(err)
	}
	close(room.open)
	if res := <-answered; res.GetRefused() != v1.ReasonGang || room.free != 1 {
		t.Errorf("the node answers %v, and %d places are free", res, room.free)
	}
}
