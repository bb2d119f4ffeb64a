package storekey

import (
	"strconv"
	"strings"
)

// batchesSuffix is the suffix of the directory with the logs of a task's batches.
const batchesSuffix = ".batches"

// BatchName returns the name of a batch with some instances of a task from first to last, such as "each[3-40]".
func BatchName(task string, first, last int) string {
	return task + "[" + extent(first, last) + "]"
}

// ParseBatchName splits a name that BatchName has made. Any other name is returned as a task, with false.
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

// ParseInstanceName splits the name of an instance, such as "each[3]". Any other name is returned as a task.
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

// parseNumber parses a non-negative number in the form that strconv.Itoa produces.
func parseNumber(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}

// cutLast splits s like strings.Cut, but at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
