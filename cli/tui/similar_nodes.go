package tui

import (
	"fmt"

	"switchyard/drawing/words"
)

// collapseSimilar replaces similar nodes by a count if there are many of them.
func (d *drawing) collapseSimilar(nodes []int, alike func(int) bool) []drawn {
	same := 0
	for _, n := range nodes {
		if alike(n) {
			same++
		}
	}
	picked, at, interesting := make([]drawn, 0, len(nodes)), 0, 0
	var left []int
	flush := func() {
		if len(left) > 0 {
			picked = append(picked, drawn{node: -1, text: d.countHidden(left), many: left})
			left = nil
		}
	}
	for _, n := range nodes {
		keep := d.all || same <= maxAlike || !alike(n)
		if !keep {
			keep = at < fewAlike || at >= same-fewAlike
			at++
			if !keep && words.Interest(d.Nodes[n].Tone()) < 2 && interesting < maxAlike {
				keep = true
				interesting++
			}
		}
		if !keep {
			left = append(left, n)
			continue
		}
		flush()
		picked = append(picked, drawn{node: n})
	}
	flush()
	return picked
}

// countHidden returns a text that counts hidden nodes by state.
func (d *drawing) countHidden(nodes []int) string {
	counts := map[string]int{}
	for _, n := range nodes {
		counts[d.Nodes[n].State]++
	}
	text := fmt.Sprintf("⋮ %d more", len(nodes))
	if tally := d.style.tally(counts); tally != "" {
		text += ": " + tally
	}
	return text
}
