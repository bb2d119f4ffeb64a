// Package pipes forwards what programs print, in the order in which it was printed if that can be known: through two pipes
// for each attempt, or through pipes that the attempts of a batch share. It imports nothing of this module.
package pipes
