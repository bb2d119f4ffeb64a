// Package ansi converts lines of terminal output to HTML.
//
// Only the escape sequences that choose colours and styles, and the one that erases a line, have an effect. All others are
// dropped with their contents: titles, links, cursor movements, queries. Carriage returns and backspaces move back on the
// line, so that a progress bar is left in its last state. Characters that are invisible or change the direction of text are
// shown as their code points. A sequence that does not end on its line loses its introducer and is shown as text: no line
// can hide another line or the rest of itself.
//
// The HTML consists of text and span elements with classes: c0 to c15 are text colours, b0 to b15 background colours, s and
// s0 to s15 inverse text, code the code point of a character, and bold, faint, italic, underline and strike are styles.
// Other colours are mapped to the nearest of the 16, for which a style sheet has values that are legible on light and dark
// backgrounds.
//
// It imports no other package of this module.
package ansi
