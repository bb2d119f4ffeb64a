package placement

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

func (v *view) hasLabel(label string) bool { return slices.Contains(v.n.snap.GetLabels(), label) }

func (v *view) hasExecutor(taskType string) bool {
	return slices.Contains(v.n.snap.GetExecutors(), taskType)
}

// missing returns the wanted items that the node does not have.
func (v *view) missing(wanted []string, has func(string) bool) []string {
	var out []string
	for _, w := range wanted {
		if !has(w) {
			out = append(out, w)
		}
	}
	return out
}

// missingCapabilities returns, in ascending order, the wanted keys that the node lacks or has with
// another value.
func (v *view) missingCapabilities() []string {
	wanted := v.constraints.GetRequiresCapabilities()
	if len(wanted) == 0 {
		return nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if value, ok := v.n.snap.GetCapabilities()[key]; !ok || value != wanted[key] {
			out = append(out, key)
		}
	}
	return out
}

// capabilityPhrase describes the first missing or different capability.
func (v *view) capabilityPhrase() phrase {
	key := v.missingCapabilities()[0]
	value, ok := v.n.snap.GetCapabilities()[key]
	if session, is := v1.SessionOfCapability(key); is && !ok {
		return phrase{verb: does, object: "not have session " + session}
	}
	if cluster, is := v1.ClusterOfCapability(key); is && !ok {
		return phrase{verb: does, object: "not reach cluster " + cluster}
	}
	if reason := v.n.snap.GetWithheld()[v1.WithheldQEMU]; key == v1.QEMUCapability && !ok && reason != "" {
		return phrase{verb: does, object: "not run virtual machines: " + reason}
	}
	if key == v1.QEMUCapability && !ok {
		return phrase{verb: lacks, object: "QEMU (packages qemu-system-x86 and qemu-utils on Debian)"}
	}
	if !ok {
		return phrase{verb: lacks, object: "capability " + key}
	}
	return phrase{verb: has, object: "capability " + key + "=" + value + " instead of " + v.constraints.GetRequiresCapabilities()[key]}
}

// refusals returns what the request's container needs and the node does not allow.
func (v *view) refusals() []string {
	if v.container == nil {
		return nil
	}
	return policy.Refusals(v.n.snap.GetContainers(), v.container)
}

// missingGPUs returns the requested GPU indices that the node does not have.
func (v *view) missingGPUs() []string {
	var out []string
	for _, index := range v.target.GPUIndices {
		has := func(g gpu) bool { return int(g.index) == index }
		if !slices.ContainsFunc(v.n.gpus, has) {
			out = append(out, strconv.Itoa(index))
		}
	}
	return out
}

// leastMemory returns the memory in MiB that the node must have in total, in use or not.
func (v *view) leastMemory() int64 {
	return max(int64(v.constraints.GetMinMemoryMb()), v.need.memoryMB)
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

func mebibytes(n int64) string { return number(n) + " MiB" }

func gibibytes(x float64) string { return decimal(x) + " GiB" }
