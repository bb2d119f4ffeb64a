package shell

// sandboxHome is the home directory of a program in a sandbox, which no other program sees.
const sandboxHome = "/tmp"

// sandboxed is what a program in a sandbox gets of the node's environment.
func sandboxed(node []string) []string {
	return append(only(node, sandboxVariables, nil), "HOME="+sandboxHome)
}
