package definition

import "strings"

// squash makes the spellings of a word alike: dependsOn, depends_on, Depends-On.
func squash(word string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(word))
}

// maxCompared bounds the words that are compared; longer ones are no slips.
const maxCompared = 64

// Nearest returns the candidate that word was probably meant to be, or nothing.
// Spelling with dashes, underscores or capitals makes no difference. A third of
// the word may be wrong, and of equally near candidates the first counts.
func Nearest(word string, candidates []string) string {
	word = squash(word)
	if len(word) > maxCompared || word == "" {
		return ""
	}
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, candidate := range candidates {
		squashed := squash(candidate)
		if abs(len(squashed)-len(word)) >= bestDistance {
			continue
		}
		if distance := editDistance(word, squashed); distance < bestDistance && distance < max(len(word), len(squashed)) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// editDistance counts the insertions, deletions, substitutions and swaps of
// neighbours that make b out of a (optimal string alignment).
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// didYouMean is the hint for a word that is not among candidates.
func didYouMean(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}
