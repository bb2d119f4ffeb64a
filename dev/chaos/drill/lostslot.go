package drill

import "fmt"

// slots is the number of tasks that the worker of lostSlot runs at once.
const slots = 2

// lostSlot kills a worker whose slots are all taken, and restarts it. The slots become free for other tasks, and their
// number stays the same.
func lostSlot(y *Cluster) error {
	if err := y.start(); err != nil {
		return err
	}
	start := func() error {
		if err := y.startWorker("a", "--max-parallel", fmt.Sprint(slots)); err != nil {
			return err
		}
		return y.awaitNodes("a")
	}
	if err := start(); err != nil {
		return err
	}
	gate := y.gate("work")
	holders := y.crowd("holders", slots, job{gate: gate})
	first, _, err := y.runOn("a", holders)
	if err != nil {
		return err
	}
	others := y.crowd("others", 2*slots, job{ticks: 5})
	second, err := y.submit(others)
	if err != nil {
		return err
	}
	if err := y.kill("a"); err != nil {
		return err
	}
	if _, err := y.command(0, "runs", "cancel", first); err != nil {
		return err
	}
	if err := start(); err != nil {
		return err
	}
	if _, err := y.finished(second); err != nil {
		return err
	}
	var places []place
	for _, task := range namesOf(others) {
		places = append(places, place{second, task})
	}
	for _, task := range namesOf(holders) {
		places = append(places, place{first, task})
	}
	return y.atMost(slots, places, "place")
}
