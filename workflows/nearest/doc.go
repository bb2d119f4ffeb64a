// Package nearest finds the word that was probably meant, for hints such as "did you mean dependsOn?".
//
// It imports the standard library only.
package nearest
