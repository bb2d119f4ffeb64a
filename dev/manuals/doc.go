// Command manuals writes the manual pages of all commands, and their completions for shells, for the packages of a
// release:
//
//	FOLDER/man/switchyard-runs-get.1
//	FOLDER/completions/switchyard.bash, _switchyard, switchyard.fish
//
// The date in the pages is that of SOURCE_DATE_EPOCH. It may import everything.
package main
