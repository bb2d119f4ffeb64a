package placement

import (
	"strconv"
	"strings"
)

// verb has the forms of a verb for one node and for several.
type verb struct{ one, many string }

var (
	has   = verb{"has", "have"}
	is    = verb{"is", "are"}
	does  = verb{"does", "do"}
	lacks = verb{"lacks", "lack"}
)

// phrase explains why a node was refused. Its subject is the node.
type phrase struct {
	verb   verb
	object string
	// want and got are set if a node was refused for a figure: what is wanted, such as "2 free
	// GPUs", and how much the node has. They allow a shorter reason if several nodes lack the same
	// thing.
	want, got string
}

func noun(word string, n int) string {
	if n > 1 {
		word += "s"
	}
	return word + " "
}

func count(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

func number[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

func decimal(x float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}

func thousandths(milli int64) string {
	return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64)
}

func cores(milli int64) string {
	if milli == 1000 {
		return "1 core"
	}
	return thousandths(milli) + " cores"
}

func gpusText(milli int64) string {
	if milli == 1000 {
		return "1 GPU"
	}
	return thousandths(milli) + " GPUs"
}

func mebibytes(n int64) string { return number(n) + " MiB" }

func gibibytes(x float64) string { return decimal(x) + " GiB" }
