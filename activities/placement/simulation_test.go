package placement

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/dev/testneeds"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// simulatedTask is a task of the trace, with what the simulation has seen of it.
type simulatedTask struct {
	owner    int
	run      Run
	req      *historyv1.TaskRequest
	kind     int // in shapes
	duration time.Duration
	asked    time.Duration // since the beginning of the day, as is
	started  time.Duration // negative until it starts
}

func (s *simulatedTask) wait() time.Duration { return s.started - s.asked }

// shapes are what tasks of the trace ask for, with their part in all jobs.
var shapes = []struct {
	name  string
	cores float64
	gpus  float64
	part  float64
}{
	{"1 core", 1, 0, 0.62}, {"4 cores", 4, 0, 0.2}, {"16 cores", 16, 0, 0.06}, {"48 cores", 48, 0, 0.01}, {"1 GPU", 2, 1, 0.05}, {"4 GPUs", 8, 4, 0.01},
}

// simulatedFleet returns nodes of six kinds; n is the number of all.
func simulatedFleet(n int) (nodes []*v1.NodeSnapshot) {
	kinds := []struct {
		cores int32
		gpus  int
		part  float64
	}{{8, 0, 0.4}, {32, 0, 0.25}, {64, 0, 0.15}, {16, 1, 0.1}, {32, 4, 0.075}, {64, 8, 0.025}}
	for k, kind := range kinds {
		for i := range int(math.Round(kind.part * float64(n))) {
			nodes = append(nodes, aNode(fmt.Sprintf("k%d-%d", k, i), slots(kind.cores), gpus(kind.gpus), func(s *v1.NodeSnapshot) { s.Cpu.Cores = kind.cores }))
		}
	}
	return nodes
}

// simulatedTrace returns tasks of five owners over a time, in the order of their arrivals. Jobs have one task or a fan-out of a heavy
// tail, and durations are those of a bounded Pareto distribution, as in the traces of public clusters (Reiss et al., "Heterogeneity
// and Dynamicity of Clouds at Scale", SoCC 2012). Owner 0 asks for eight times as much as owner 4. Every twentieth job is
// urgent, and every second one has a time limit.
func simulatedTrace(r *rand.Rand, count int, over time.Duration) (all []*simulatedTask) {
	for job := 0; len(all) < count; job++ {
		owner, at := pick(r, []float64{8, 5, 3, 2, 1}), time.Duration(r.Float64()*float64(over))
		kind := pick(r, []float64{shapes[0].part, shapes[1].part, shapes[2].part, shapes[3].part, shapes[4].part, shapes[5].part})
		size := int(min(pareto(r, 1, 1.1), 300))
		if shapes[kind].cores > 16 || shapes[kind].gpus > 1 {
			size = min(size, 8)
		}
		mean := pareto(r, 1300, 1.4)
		run := Run{ID: fmt.Sprintf("run-%d", job), Owner: fmt.Sprintf("owner-%d", owner), Workflow: fmt.Sprintf("workflow-%d", r.IntN(200))}
		for i := range min(size, count-len(all)) {
			d := time.Duration(min(mean*(0.5+r.Float64()), 6*3600) * float64(time.Second))
			req := aTask(fmt.Sprintf("t[%d]", i), withCores(shapes[kind].cores))
			req.Resources.Gpus = shapes[kind].gpus
			if job%20 == 0 {
				req.Priority = 5
			}
			if job%2 == 0 {
				req.Timeout = durationpb.New(2 * d)
			}
			all = append(all, &simulatedTask{owner: owner, run: run, req: req, kind: kind, duration: d, asked: at, started: -1})
		}
	}
	slices.SortStableFunc(all, func(a, b *simulatedTask) int { return int(a.asked - b.asked) })
	return all
}

func pick(r *rand.Rand, parts []float64) int {
	sum := 0.0
	for _, p := range parts {
		sum += p
	}
	x := r.Float64() * sum
	for i, p := range parts {
		if x -= p; x < 0 {
			return i
		}
	}
	return len(parts) - 1
}

func pareto(r *rand.Rand, least, shape float64) float64 {
	return least * math.Pow(1-r.Float64(), -1/shape)
}

// simulatedEnd is the end of a task that runs.
type simulatedEnd struct {
	at   time.Duration
	key  claimKey
	task *simulatedTask
}

type simulatedEnds []simulatedEnd

func (h simulatedEnds) Len() int           { return len(h) }
func (h simulatedEnds) Less(i, j int) bool { return h[i].at < h[j].at }
func (h simulatedEnds) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *simulatedEnds) Push(x any)        { *h = append(*h, x.(simulatedEnd)) }
func (h *simulatedEnds) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// figuresOfDay are what a simulation shows.
type figuresOfDay struct {
	utilisation float64 // of cores, between the first and the last arrival
	jain        float64 // of the parts that backlogged owners held, in the mean over all hours
	waits       [5]time.Duration
	// wide and urgent are the mean waits of the tasks of 48 cores and of 4 GPUs, and of those among them with a priority.
	wide, urgent time.Duration
	slowdown     float64 // mean of (wait + duration) / max(duration, 10 s)
}

// simulate runs a trace through a queue, to the end of its last task.
func simulate(opts Options, nodes []*v1.NodeSnapshot, trace []*simulatedTask, seed uint64) figuresOfDay {
	c := newClock()
	begin := c.now()
	opts.Now, opts.Rand = c.now, rand.New(rand.NewPCG(seed, 2))
	q := New(opts)
	q.SetNodes(live(nodes...))
	total := q.fleet.total()
	byKey, ends, next := map[claimKey]*simulatedTask{}, simulatedEnds{}, 0
	last := trace[len(trace)-1].asked
	var f figuresOfDay
	var held, backlog [5]float64 // of the current hour, in seconds
	var used float64             // core seconds until the last arrival
	hours, at := 0, time.Duration(0)
	var holds [5]quantity
	var waiting [5]int
	for next < len(trace) || len(ends) > 0 {
		then := time.Duration(math.MaxInt64)
		if next < len(trace) {
			then = trace[next].asked
		}
		if len(ends) > 0 {
			then = min(then, ends[0].at)
		}
		if due, ok := q.NextDeadline(); ok {
			then = min(then, max(due.Sub(begin), at+time.Millisecond))
		}
		then = max(then, at)
		step := (then - at).Seconds()
		for o := range holds {
			held[o] += holds[o].share(&total) * step
			if waiting[o] > 0 {
				backlog[o] += step
			}
			if then <= last {
				used += float64(holds[o][coreUnit]) / 1000 * step
			}
		}
		if then/time.Hour > at/time.Hour {
			var shares []float64
			for o := range held {
				if backlog[o] > 3400 {
					shares = append(shares, held[o])
				}
			}
			if len(shares) > 1 {
				f.jain += jainIndex(shares)
				hours++
			}
			held, backlog = [5]float64{}, [5]float64{}
		}
		at = then
		c.t = begin.Add(at)
		for ; next < len(trace) && trace[next].asked <= at; next++ {
			task := trace[next]
			task.started = -1
			queuedAt(c.now())(task.req)
			byKey[claimKey{task.run.ID, task.req.Task, 1}] = task
			waiting[task.owner]++
			q.Request(task.run, []*historyv1.TaskRequest{task.req})
		}
		for len(ends) > 0 && ends[0].at <= at {
			e := heap.Pop(&ends).(simulatedEnd)
			holds[e.task.owner].sub(quantityOf(q.demand.requestOf(e.key.run, e.key.task).place.grant))
			q.Release(e.key.run, []*historyv1.ClaimRef{{Task: e.key.task, Claim: 1, Outcome: v1.OutcomeDone}})
		}
		for _, runID := range q.Place() {
			placed, _ := q.Take(runID)
			for _, a := range placed {
				key := claimKey{runID, a.Task, 1}
				task := byKey[key]
				task.started = at
				waiting[task.owner]--
				holds[task.owner].add(quantityOf(q.demand.requestOf(runID, a.Task).place.grant))
				heap.Push(&ends, simulatedEnd{at + task.duration, key, task})
			}
		}
	}
	f.utilisation = used / (float64(total[coreUnit]) / 1000 * last.Seconds())
	f.jain /= float64(max(hours, 1))
	f.addWaits(trace)
	return f
}

// jainIndex returns Jain's fairness index of parts, from 1/n to 1 (Jain, Chiu and Hawe, DEC-TR-301, 1984).
func jainIndex(parts []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range parts {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(parts)) * squares)
}

func (f *figuresOfDay) addWaits(trace []*simulatedTask) {
	var counts [5]int
	wide, urgent := 0, 0
	for _, task := range trace {
		f.waits[task.owner] += task.wait()
		counts[task.owner]++
		f.slowdown += float64(task.wait()+task.duration) / float64(max(task.duration, 10*time.Second))
		if shape := shapes[task.kind]; shape.cores > 16 || shape.gpus > 1 {
			f.wide += task.wait()
			wide++
			if task.req.GetPriority() > 0 {
				f.urgent += task.wait()
				urgent++
			}
		}
	}
	f.slowdown /= float64(len(trace))
	f.wide, f.urgent = f.wide/time.Duration(max(wide, 1)), f.urgent/time.Duration(max(urgent, 1))
	for o := range f.waits {
		f.waits[o] = (f.waits[o] / time.Duration(max(counts[o], 1))).Round(time.Second)
	}
}

// TestDayOfAFleet replays the first hours of a day on a fleet of 200 nodes.
func TestDayOfAFleet(t *testing.T) {
	t.Parallel()
	checkDay(t, 10_000, 5*time.Hour, 0.8)
}

// TestLongDayOfAFleet replays a whole day.
func TestLongDayOfAFleet(t *testing.T) {
	testneeds.Long(t)
	checkDay(t, 50_000, 24*time.Hour, 0.9)
}

// checkDay replays a generated day through three queues: that of a fleet, one in the order of arrival with reservations, and plain
// first-fit in the order of arrival. Turns and reservations must cost next to no utilisation, owners who wait must hold about the
// same, and urgent wide tasks must start sooner.
func checkDay(t *testing.T, tasks int, over time.Duration, leastJain float64) {
	fleet := simulatedFleet(200)
	got := map[string]figuresOfDay{}
	for _, opts := range []Options{{Epoch: "fair"}, {Epoch: "fifo", FIFO: true}, {Epoch: "first-fit", FIFO: true, NoReservations: true}} {
		f := simulate(opts, fleet, simulatedTrace(rand.New(rand.NewPCG(1, 1)), tasks, over), 1)
		got[opts.Epoch] = f
		t.Logf("%-9s utilisation %.3f, Jain %.3f, waits %v, wide %v, urgent wide %v, slowdown %.2f", opts.Epoch, f.utilisation, f.jain, f.waits, f.wide.Round(time.Second), f.urgent.Round(time.Second), f.slowdown)
	}
	fair, plain := got["fair"], got["first-fit"]
	if fair.utilisation < 0.97*plain.utilisation {
		t.Errorf("the utilisation is %.3f, and %.3f with plain first-fit", fair.utilisation, plain.utilisation)
	}
	if fair.jain < leastJain || fair.jain < plain.jain {
		t.Errorf("Jain's index is %.3f, and %.3f with plain first-fit", fair.jain, plain.jain)
	}
	if fair.urgent > plain.urgent {
		t.Errorf("urgent wide tasks wait %v, and %v with plain first-fit", fair.urgent, plain.urgent)
	}
}
