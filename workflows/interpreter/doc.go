// Package interpreter determines which program runs a command that is a text: sh, the program that the first line of the text
// names after #!, or the one that spec.shell names.
//
//	first line is #!PROGRAM [ARG]   PROGRAM [ARG] FILE            FILE holds the text; all after PROGRAM is one ARG, as for the kernel
//	shell: [PROGRAM, ARG...]        PROGRAM ARG... TEXT
//	shell: WORD                     the program and the arguments of the word
//	otherwise                       sh -c TEXT, or sh -ec TEXT for several lines
//
// The interpreter is started with the file, rather than the file itself, so that a file system without programs (noexec) and a
// file that another process still holds open do no harm.
//
// The package is pure. It may import workflows/nearest, structpb and the standard library.
package interpreter
