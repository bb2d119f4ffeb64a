// Package bashism finds what a shell script uses of bash that many shells named sh, such as dash and the one of busybox, lack.
//
// A script is parsed as bash. Words in quotes, here-documents, and scripts for other programs are texts and not looked into. A
// script that does not parse, or that tests for bash itself, has no findings, so that a warning is never about a guess.
//
// The package is pure. It may import mvdan.cc/sh and the standard library.
package bashism
