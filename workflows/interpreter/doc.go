// Package interpreter determines which program runs a command that is a text: sh, the program that the first line of the text
// names after #!, or the one that spec.shell names.
//
//	first line is #!PROGRAM [ARG]   PROGRAM [ARG] FILE            FILE holds the text; all after PROGRAM is one ARG, as for the kernel
//	shell: [PROGRAM, ARG...]        PROGRAM ARG... TEXT
//	shell: WORD                     the program and the arguments of the word
//	otherwise                       sh -c TEXT, or sh -ec TEXT for several lines
//
// A shell takes a TEXT that is too long for an argument from a file: sh -ec ". 'FILE'". LongTexts finds what else of a task is too
// long for a program.
//
// The interpreter is started with the file, rather than the file itself, so that a file system without programs (noexec) and a
// file that another process still holds open do no harm.
//
// The package is pure. It may import workflows/nearest, structpb and the standard library.
package interpreter
