package taskrunner

import (
	"fmt"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"switchyard/activities/executor"
)

const base = 15 * time.Second

func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration][2]time.Duration{
		base:             {9 * time.Second, 12 * time.Second},
		75 * time.Second: {20 * time.Second, 30 * time.Second},
		2 * time.Minute:  {65 * time.Second, 75 * time.Second},
		10 * time.Minute: {6 * time.Minute, 450 * time.Second},
	} {
		if stop, kill := leaseEnds(timeout, base, acknowledged(nil).surely(base)); stop != want[0] || kill != want[1] {
			t.Errorf("with %v it is asked to stop after %v and killed after %v, want %v", timeout, stop, kill, want)
		}
	}
	if stop, kill := leaseEnds(5*time.Minute, 5*time.Minute, 0); stop != 3*time.Minute || kill != 4*time.Minute {
		t.Errorf("a time-out that is set ends after %v and %v", stop, kill)
	}
}

// lives raises the time-out of an attempt for a while, with a server that answers at once.
func lives(age, limit time.Duration) (g growth, raises int) {
	g = growth{base: base, limit: limit, inForce: base, inUse: base}
	for at := time.Duration(0); at < age; at += 3 * time.Second {
		timeout, confirm := g.next(executor.Instant(at), at)
		switch {
		case confirm:
			g.confirmed(g.inForce)
		case timeout > 0:
			g.raised(timeout, executor.Instant(at))
			raises++
		}
	}
	return g, raises
}

// An old attempt outlives a long outage, and a young one moves soon.
func TestLeaseGrowsWithAge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		age, limit, survives time.Duration
		most                 time.Duration // the longest time-out on the server
	}{
		{time.Second, 10 * time.Minute, 0, base},
		{3 * time.Minute, 10 * time.Minute, 0, base},
		{6 * time.Minute, 10 * time.Minute, 30 * time.Second, 2 * time.Minute},
		{40 * time.Minute, 10 * time.Minute, 5 * time.Minute, 10 * time.Minute},
		{72 * time.Hour, 10 * time.Minute, 355 * time.Second, 10 * time.Minute},
		{72 * time.Hour, base, 0, base},
		{72 * time.Hour, 0, 0, base},
		{72 * time.Hour, time.Hour, 35 * time.Minute, time.Hour},
	} {
		g, raises := lives(test.age, test.limit)
		if stop, _ := leaseEnds(g.inUse, base, acknowledged(nil).surely(base)); stop-base/5 < test.survives {
			t.Errorf("aged %v, up to %v: it survives %v, want %v", test.age, test.limit, stop-base/5, test.survives)
		}
		if g.inForce > test.most || raises > 20 {
			t.Errorf("aged %v, up to %v: the time-out is %v after %d raises, want at most %v", test.age, test.limit, g.inForce, raises, test.most)
		}
	}
}

// A raise that the server has lost, or that a person has lowered, is not used.
func TestLostRaiseIsNotUsed(t *testing.T) {
	t.Parallel()
	g, _ := lives(10*time.Minute, 10*time.Minute)
	if g.raised(10*time.Minute, 0); g.inUse >= 10*time.Minute {
		t.Fatal("it is used at once")
	}
	if timeout, confirm := g.next(executor.Instant(base), time.Hour); timeout != 0 || confirm {
		t.Error("it is confirmed, or raised again, too early")
	}
	if _, confirm := g.next(executor.Instant(time.Minute), time.Hour); !confirm {
		t.Error("it is not confirmed")
	}
	if g.confirmed(base); g.inUse != base || g.inForce != base {
		t.Errorf("%v is in use, though the server has %v", g.inUse, base)
	}
	g.failed(executor.Instant(time.Hour))
	if timeout, _ := g.next(executor.Instant(time.Hour), time.Hour); timeout != 0 {
		t.Error("the server is called again at once")
	}
	if timeout, _ := g.next(executor.Instant(time.Hour+base), time.Hour); timeout == 0 {
		t.Error("the server is not called again")
	}
}

// cluster is a server with a database that loses what is newest, and a node with a clock that runs at another speed. Times are in
// milliseconds of the server's clock.
type cluster struct {
	now   int64
	speed float64 // of the node's clock
	down  int64   // until when the server is down
	// rows are the states of the database, with the time from which each is valid.
	rows []row

	growth growth
	acked  acknowledged     // by the node's clock
	killAt executor.Instant // by the node's clock
	next   int64            // when the next heartbeat is due
	age    int64
	cut    int64 // until when the node does not reach the server
}

type row struct{ at, timeout, beat int64 }

func (c *cluster) row() *row { return &c.rows[len(c.rows)-1] }

// local converts a time of the server's clock to the node's.
func (c *cluster) local(at int64) executor.Instant {
	return executor.Instant(float64(at) * c.speed * float64(time.Millisecond))
}

// call makes a call of the node and reports whether its answer arrives. The server may carry out a call that seems to fail.
func (c *cluster) call(fails func() bool, change func(r *row)) bool {
	if c.now < c.down || c.now < c.cut {
		return false
	}
	if fails() && fails() {
		return false
	}
	r := *c.row()
	r.at = c.now
	change(&r)
	c.rows = append(c.rows, r)
	return !fails()
}

// follow makes the lease that of the time-out in use.
func (c *cluster) follow() {
	_, kill := leaseEnds(c.growth.inUse, base, c.acked.surely(base))
	c.killAt = c.acked[len(c.acked)-1].Add(kill)
}

// check lets a second pass. It reports whether the attempt still runs.
func (c *cluster) check(t *rapid.T, fails func() bool) bool {
	runs := c.step(fails)
	if r := c.row(); runs && c.now >= c.down && c.now >= r.beat+r.timeout {
		t.Fatalf("at %d s the server has seen no heartbeat since %d s, with a time-out of %d s, but the attempt runs until %v of the node's clock",
			c.now/1000, r.beat/1000, r.timeout/1000, time.Duration(c.killAt))
	}
	return runs
}

// step lets a second pass. It reports whether the attempt still runs.
func (c *cluster) step(fails func() bool) bool {
	c.now += 1000
	if c.local(c.now) >= c.killAt {
		return false
	}
	if c.now < c.next {
		return true
	}
	c.next = c.now + base.Milliseconds()/5
	sent := c.now
	if !c.call(fails, func(r *row) { r.beat = c.now }) {
		return true
	}
	c.acked.add(c.local(sent), base)
	c.follow()
	timeout, confirm := c.growth.next(c.local(c.now), time.Duration(c.age+c.now)*time.Millisecond)
	switch {
	case confirm:
		if c.call(fails, func(*row) {}) {
			c.growth.confirmed(time.Duration(c.row().timeout) * time.Millisecond)
			c.follow()
		} else {
			c.growth.failed(c.local(c.now))
		}
	case timeout > 0:
		if c.call(fails, func(r *row) { r.timeout = timeout.Milliseconds() }) {
			c.growth.raised(timeout, c.local(c.now))
		} else {
			c.growth.failed(c.local(c.now))
		}
	}
	return true
}

// When the server gives the task to another node, nothing of the attempt is left: whatever the network loses, and although the
// clocks differ by 10%, or a crash of the server loses what the last 30 s have written.
func TestTaskNeverRunsTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{
			speed: rapid.SampledFrom([]float64{0.9, 1, 1.1}).Draw(t, "speed"), rows: []row{{0, base.Milliseconds(), 0}},
			growth: growth{base: base, limit: time.Duration(rapid.IntRange(15, 1200).Draw(t, "limit")) * time.Second, inForce: base, inUse: base},
			age:    1000 * rapid.SampledFrom([]int64{0, 200, 600, 4800}).Draw(t, "age"),
		}
		percent := rapid.SampledFrom([]int{0, 0, 10, 30}).Draw(t, "failing calls")
		dice := rapid.IntRange(0, 99)
		fails := func() bool { return percent > 0 && dice.Draw(t, "call") < percent }
		c.acked.add(0, base)
		c.follow()
		for range rapid.IntRange(1, 4).Draw(t, "faults") {
			for range rapid.IntRange(0, 150).Draw(t, "quiet seconds") {
				if !c.check(t, fails) {
					return
				}
			}
			fault := "cut"
			if c.speed == 1 {
				fault = rapid.SampledFrom([]string{"cut", "crash", "both", "both"}).Draw(t, "fault")
			}
			if fault != "cut" {
				lost := c.now - 1000*rapid.SampledFrom([]int64{0, 15, 30}).Draw(t, "lost")
				for len(c.rows) > 1 && c.row().at > lost {
					c.rows = c.rows[:len(c.rows)-1]
				}
				c.down = c.now + 1000*rapid.Int64Range(15, 20).Draw(t, "down")
			}
			if fault != "crash" {
				c.cut = c.now + 1000*rapid.SampledFrom([]int64{10, 20, 60, 2000}).Draw(t, "cut")
			}
		}
		for c.check(t, fails) && c.now < c.cut {
		}
	})
}

// growing returns an attempt, which is not running, on a node with a fake server.
func growing(t *testing.T, max time.Duration) (*bench, *attempt) {
	b := newBench(t, nil)
	req := request("a")
	req.MaxLease = durationpb.New(max)
	a := b.newAttempt(delivery{activityRef: minuteActivity("one")}, req)
	a.stop = func(error) {}
	a.spawned(time.Now().Add(-time.Hour))
	return b, a
}

func beats(t *testing.T, a *attempt) {
	t.Helper()
	if err := a.beats.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// lengthIs checks the length of an attempt's lease.
func lengthIs(t *testing.T, a *attempt, of string, want time.Duration) {
	t.Helper()
	if got := a.beats.lease.Length(); got != want {
		t.Errorf("%s: the lease is %v long, want %v", of, got, want)
	}
}

// A lease belongs to an activity: the next one begins with its own time-out, which is then raised, too.
func TestLeaseBelongsToTheActivity(t *testing.T) {
	t.Parallel()
	b, a := growing(t, 10*time.Minute)
	_, first := leaseEnds(time.Minute, time.Minute, 0)
	_, raised := leaseEnds(10*time.Minute, time.Minute, acknowledged(nil).surely(time.Minute))
	old, _ := a.attendance.sender()
	grow := func() {
		t.Helper()
		beats(t, a)
		lengthIs(t, a, "acknowledged", first)
		a.beats.growth.from = 0
		beats(t, a)
		lengthIs(t, a, "in use", raised)
	}
	grow()
	a.attendance.reattach(minuteActivity("two"))
	lengthIs(t, a, "reattached", first)
	a.attendance.use(old, 10*time.Minute)
	lengthIs(t, a, "raised for the earlier activity", first)
	grow()
	if !a.attendance.detach(time.Second, running) {
		t.Fatal("it is not detached")
	}
	if got := a.attendance.detachedLease(); got*8/10 != raised {
		t.Errorf("detached for %v, want more than the length of the lease, %v", got, raised)
	}
	a.attendance.reattach(minuteActivity("three"))
	lengthIs(t, a, "reattached, and not acknowledged", raised)
	beats(t, a)
	lengthIs(t, a, "acknowledged", first)
	if left := a.beats.lease.KillAt().Sub(executor.Now()); left > first {
		t.Errorf("it lives for %v after an acknowledged heartbeat", left)
	}
	if got := b.server.timeoutOf("three"); got != 10*time.Minute {
		t.Errorf("the time-out of the newest activity is %v", got)
	}
}

// A server that does not raise time-outs leaves the leases as they are, and is asked once.
func TestServerThatRefusesToRaise(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"unknown": serviceerror.NewUnimplemented("unknown method"), "denied": serviceerror.NewPermissionDenied("no", ""),
	} {
		b, a := growing(t, 10*time.Minute)
		b.server.refuse(err)
		for range 3 {
			beats(t, a)
			a.beats.growth.again = 0
		}
		if n := b.server.updates(); n != 1 {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
	b, a := growing(t, 10*time.Minute)
	b.server.refuse(errAway)
	for range 2 {
		beats(t, a)
		a.beats.growth.again = 0
	}
	if n := b.server.updates(); n != 2 {
		t.Errorf("a server that is away was asked %d times", n)
	}
	b, a = growing(t, 0)
	beats(t, a)
	if n := b.server.updates(); n != 0 {
		t.Errorf("an attempt with a fixed time-out asked %d times", n)
	}
}

// A checkpoint, and the start of the next member of a batch, make an attempt young.
func TestSavedWorkIsNotLost(t *testing.T) {
	t.Parallel()
	b, a := growing(t, 10*time.Minute)
	a.beats.workFrom(time.Now())
	beats(t, a)
	if n := b.server.updates(); n != 0 {
		t.Errorf("raised %d times", n)
	}
}

// A later worker takes the raised lease over, and raises it further.
func TestRaisedLeaseIsRecovered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newAttendance(minuteActivity("one"), &recoveryFile{}, func() {}, func() bool { return false })
	path := recoveryPath(dir, "a")
	request, spec := []byte(`{"runId":"r-1"}`), []byte(`{}`)
	if err := w.createFile(path, func(k *recoveryState) { k.Version, k.Request, k.Spec = keepsakeVersion, request, spec }); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		l, err := readOrphan(path)
		if err != nil {
			t.Fatal(err)
		}
		stop, kill := l.ends()
		return fmt.Sprint(l.state.Heartbeat, l.state.inUse(), stop, kill)
	}
	one, _ := w.sender()
	if got, want := read(), "1m0s 1m0s 36s 48s"; got != want {
		t.Errorf("at first %s, want %s", got, want)
	}
	w.renew(one, executor.Now())
	if w.use(one, 10*time.Minute); read() != "1m0s 10m0s 6m0s 7m0s" {
		t.Errorf("raised: %s", read())
	}
	if w.reattach(minuteActivity("two")); read() != "1m0s 1m0s 36s 48s" {
		t.Errorf("reattached: %s", read())
	}
}
