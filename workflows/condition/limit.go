package condition

// What an expression may cost. No condition that was written by hand meets
// these; they bound what a hostile or generated one can do to the process that
// evaluates it. All but maxLength are checked by CEL or on CEL's own tree.
const (
	// maxLength is the length of an expression in bytes.
	maxLength = 8 << 10
	// maxDepth is how deep an expression nests: brackets while it is parsed, and
	// then its tree. CEL's checker and planner recurse over the tree.
	maxDepth = 64
	// maxNodes is the size of the tree, macros expanded.
	maxNodes = 5000
	// maxLoops is the number of all, exists, map and filter together. Each may nest
	// the type of its list deeper, or double its value.
	maxLoops = 16
	// maxLiteral is the number of entries of a list or map literal. CEL charges a
	// literal the same whatever its length, so that one in a loop would be free
	// work.
	maxLiteral = 200
	// maxErrorRecovery is how often the parser tries to continue after a syntax
	// error; only the first error is shown.
	maxErrorRecovery = 4

	// costLimit is what one evaluation may cost. See callCost for the unit.
	costLimit = 100_000
	// interruptEvery is the number of loop iterations between two looks at the
	// context. An iteration costs at least 4, so that no more than costLimit/4
	// happen at all.
	interruptEvery = 16

	// maxPattern is the length of a regular expression in bytes, maxProgram its
	// compiled size in instructions.
	maxPattern = 1 << 10
	maxProgram = 2000
)
