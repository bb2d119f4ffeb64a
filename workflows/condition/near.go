package condition

import (
	"slices"
	"strings"
)

// nearest returns the candidate that name is most likely a misspelling of, or
// "" when none is near: case and underscores do not count, and one edit is
// allowed for every three characters.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", len(name)/3+1
	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		if d := distance(fold(name), fold(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

func fold(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "")
}

// distance is the number of characters to insert, delete, replace or swap with
// a neighbour that turns a into b.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			substitute := row[j]
			if a[i] != b[j] {
				substitute++
			}
			next[j+1] = min(substitute, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
