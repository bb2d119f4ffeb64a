package nearest

import (
	"slices"
	"strings"
)

// maxCompared is the longest word that is compared, in bytes; a longer one is not a typing mistake.
const maxCompared = 64

// Fold returns a word without the differences between spellings: dependsOn, depends_on and Depends-On fold to the same text.
func Fold(word string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(word))
}

// Word returns the candidate that word was probably meant to be, or "" if none is near or word is a candidate. Words are compared
// in folded form. A third of the word may be wrong; among equally near candidates the first one is returned.
func Word(word string, candidates []string) string {
	if slices.Contains(candidates, word) {
		return ""
	}
	word = Fold(word)
	if len(word) > maxCompared || word == "" {
		return ""
	}
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, candidate := range candidates {
		folded := Fold(candidate)
		if max(len(folded)-len(word), len(word)-len(folded)) >= bestDistance {
			continue
		}
		if d := distance(word, folded); d < bestDistance && d < max(len(word), len(folded)) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// DidYouMean returns a hint for a word that is not a candidate, or "" if no candidate is near.
func DidYouMean(word string, candidates []string) string {
	if near := Word(word, candidates); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// Alternatives formats words as "a, b or c".
func Alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Rank returns the candidates sorted by their similarity to word, most similar first.
func Rank(word string, candidates []string) []string {
	word = Fold(word)
	ranked := slices.Clone(candidates)
	distances := make(map[string]int, len(ranked))
	for _, candidate := range ranked {
		distances[candidate] = distance(word, Fold(candidate))
	}
	slices.SortStableFunc(ranked, func(a, b string) int { return distances[a] - distances[b] })
	return ranked
}

// distance returns the number of insertions, deletions, substitutions and swaps of neighbours that turn a into b (optimal
// string alignment), in bytes.
func distance(a, b string) int {
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
