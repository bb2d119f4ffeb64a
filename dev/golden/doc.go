// Package golden compares the output of tests with files. The flag -update of a test writes the files again.
// Only tests import it.
package golden
