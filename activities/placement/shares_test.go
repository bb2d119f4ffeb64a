package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestSharesConvergeToWeights checks that owners who always ask hold parts of the fleet in proportion to their weights after a while,
// whichever of them came first, and whichever attempts end. On average each holds what it is due to within one task, because it can only
// hold whole ones.
func TestSharesConvergeToWeights(t *testing.T) {
	testneeds.Checks(t, 200)
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		halfLife := time.Duration(rapid.IntRange(10, 60).Draw(t, "half-life")) * time.Second
		q := New(Options{Now: c.now, Rand: rand.New(rand.NewPCG(1, 1)), FairHalfLife: halfLife})
		cores := rapid.Int32Range(6, 12).Draw(t, "cores")
		room := func(n *v1.NodeSnapshot) { n.Cpu.Cores, n.MaxParallel = cores, cores }
		q.SetNodes(live(aNode("a", room), aNode("b", room)))
		terms, sum, size := map[string]Terms{}, 0.0, 2*int(cores)
		var owners []string
		for i := range rapid.IntRange(2, 4).Draw(t, "owners") {
			w := rapid.SampledFrom([]float64{0.5, 1, 1, 2, 3}).Draw(t, "weight")
			owners = append(owners, fmt.Sprint("owner", i))
			terms[owners[i]] = Terms{Weight: w}
			sum += w
		}
		q.SetTerms(terms)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "ends"), 1))
		var running []claimKey
		asked := map[string]int{}
		ask := func(owner string) {
			asked[owner]++
			task := aTask(fmt.Sprintf("each[%d]", asked[owner]), queuedAt(c.now()))
			q.Request(Run{ID: owner, Owner: owner}, []*historyv1.TaskRequest{task})
		}
		pass := func() {
			for _, owner := range q.Place() {
				placed, _ := q.Take(owner)
				for _, a := range placed {
					running = append(running, claimKey{owner, a.Task, 1})
					ask(owner)
				}
			}
		}
		for _, owner := range owners { // the first one takes everything
			for range 2 * size {
				ask(owner)
			}
			pass()
		}
		rounds := 20 * size
		held := map[string]float64{}
		for i := range rounds {
			c.add(time.Second)
			k := rnd.IntN(len(running))
			key := running[k]
			running[k] = running[len(running)-1]
			running = running[:len(running)-1]
			release(q, key.run, key.task, 1)
			pass()
			if len(running) != size {
				t.Fatalf("%d of %d cores are in use", len(running), size)
			}
			if i >= rounds/2 {
				for _, key := range running {
					held[key.run] += 1 / float64(size*rounds/2)
				}
			}
		}
		for _, owner := range owners {
			if want := terms[owner].Weight / sum; math.Abs(held[owner]-want) > 1/float64(size) {
				t.Fatalf("%s held %.3f of the fleet, want %.3f", owner, held[owner], want)
			}
		}
	})
}
