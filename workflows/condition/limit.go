package condition

// These are the limits of an expression. No handwritten condition reaches them; they bound what a hostile or generated one can
// do to the process that evaluates it. All but maxLength are enforced by CEL or on CEL's own tree.
const (
	// maxLength is the maximum length of an expression in bytes.
	maxLength = 8 << 10
	// maxDepth is the maximum nesting of an expression: of brackets during parsing, and then of its tree. CEL's checker and
	// planner recurse over the tree.
	maxDepth = 64
	// maxNodes is the maximum size of the tree with macros expanded.
	maxNodes = 5000
	// maxLoops is the maximum number of all, exists, map and filter together. Each may nest the type of its list one level
	// deeper, or double its value.
	maxLoops = 16
	// maxLiteral is the maximum number of entries in a list or map literal. CEL charges a literal the same whatever its length,
	// so a long one in a loop would be free work.
	maxLiteral = 200
	// maxErrorRecovery is how often the parser tries to continue after a syntax error; only the first error is shown.
	maxErrorRecovery = 4

	// interruptEvery is the number of loop iterations between two checks of the context. An iteration costs at least 4, so
	// there are at most costLimit/4 of them.
	interruptEvery = 16

	// maxPattern is the maximum length of a regular expression in bytes, and maxProgram its maximum compiled size in
	// instructions.
	maxPattern = 1 << 10
	maxProgram = 2000
)
