package shell

// sandboxHome is the home directory of a program in a sandbox, which is invisible to other
// programs.
const sandboxHome = "/tmp"

// sandboxed returns the variables of the node that a program in a sandbox gets.
func sandboxed(node []string) []string {
	return append(filterVariables(node, sandboxVariables, nil), "HOME="+sandboxHome)
}
