package storekey

import (
	"strconv"
	"strings"
)

// batchesSuffix ends the directory of the logs of the batches of a task.
const batchesSuffix = ".batches"

// BatchName names the instances from first to last of a task, of which a batch has
// some, such as "each[3-40]".
func BatchName(task string, first, last int) string {
	return task + "[" + extent(first, last) + "]"
}

// ParseBatchName is the inverse of BatchName.
func ParseBatchName(name string) (task string, first, last int, ok bool) {
	task, inner, ok := bracketed(name)
	if ok {
		first, last, ok = parseExtent(inner)
	}
	if !ok {
		return name, 0, 0, false
	}
	return task, first, last, true
}

// ParseInstanceName takes the name of an instance, such as "each[3]", apart. What is
// none is a task.
func ParseInstanceName(name string) (task string, index int, ok bool) {
	task, inner, ok := bracketed(name)
	if ok {
		index, ok = parseNumber(inner)
	}
	if !ok {
		return name, 0, false
	}
	return task, index, true
}

func bracketed(name string) (task, inner string, ok bool) {
	rest, found := strings.CutSuffix(name, "]")
	if !found {
		return name, "", false
	}
	return strings.Cut(rest, "[")
}

func extent(first, last int) string { return strconv.Itoa(first) + "-" + strconv.Itoa(last) }

func parseExtent(text string) (first, last int, ok bool) {
	from, to, cut := strings.Cut(text, "-")
	first, isFirst := parseNumber(from)
	last, isLast := parseNumber(to)
	return first, last, cut && isFirst && isLast && first <= last
}

// parseNumber reads a number as strconv.Itoa writes one that is not negative.
func parseNumber(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}

// cutLast is strings.Cut around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
