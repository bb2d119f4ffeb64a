package web

import (
	"math"
	"strconv"

	v1 "switchyard/proto/switchyard/v1"
)

// mibPerGiB is the number of MiB in a GiB.
const mibPerGiB = 1024

// amount is the usage of a resource, shown as a meter with text.
type amount struct {
	Name        string
	Used, Total float64
	Unit        string // such as " GiB"
}

// newAmount returns the usage of a node's resource, in units of the given size.
func newAmount(name string, a *v1.NodeAmount, size float64, unit string) amount {
	return amount{name, max(0, a.GetTotal()-a.GetFree()) / size, a.GetTotal() / size, unit}
}

// add returns the sum of two amounts of the same resource.
func (a amount) add(b amount) amount {
	a.Used += b.Used
	a.Total += b.Total
	return a
}

// Text returns the amount as text, such as "3.5 of 16 GiB".
func (a amount) Text() string { return figure(a.Used) + " of " + figure(a.Total) + a.Unit }

// UsedText returns the formatted used amount.
func (a amount) UsedText() string { return figure(a.Used) }

// TotalText returns the formatted total amount.
func (a amount) TotalText() string { return figure(a.Total) }

// figure formats a number, with one decimal if it is below 100.
func figure(f float64) string {
	if math.Abs(f) < 100 {
		return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64)
	}
	return strconv.FormatFloat(math.Round(f), 'f', -1, 64)
}

// nodeAmounts returns the resource usage of a node, without resources that the node lacks.
func nodeAmounts(n *v1.Node) []amount {
	all := []amount{
		{"tasks", float64(n.GetRunning()), float64(n.GetMaxParallel()), ""},
		newAmount("cores", n.GetCores(), 1, ""),
		newAmount("memory", n.GetMemoryMb(), mibPerGiB, " GiB"),
		newAmount("disk", n.GetDiskGb(), 1, " GiB"),
		newAmount("GPUs", n.GetGpus(), 1, ""),
	}
	var known []amount
	for _, a := range all {
		if a.Total > 0 {
			known = append(known, a)
		}
	}
	return known
}
