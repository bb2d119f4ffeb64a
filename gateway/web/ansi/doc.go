// Package ansi turns lines that programs print for a terminal into HTML.
//
// Of the escape sequences only those that choose colours and styles have an effect, and the one that erases a line; all
// others are dropped, with what they carry: titles, links, cursor movements, queries. A carriage return and a backspace move
// back on the line, so that of a progress bar its last state is left. Characters that are invisible or turn the direction of
// text are shown by their numbers. A sequence that does not end on its line loses its introducer and is shown as text: no
// line can hide another one, or the rest of its own.
//
// The HTML has text and span elements with classes (c0 to c15 colours of text, b0 to b15 of its background, s and s0 to s15
// of inverse text, bold, faint, italic, underline, strike, and code for the number of a character), and nothing else. Other
// colours become the nearest of the 16, for which a style sheet has values that can be read on light and on dark.
//
// It imports no other package of this module.
package ansi
