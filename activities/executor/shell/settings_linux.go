package shell

import (
	"strconv"

	"switchyard/activities/executor"
)

// cpuPeriod is the time, in microseconds, in which a share of the processors is given.
const cpuPeriod = 100_000

// setting is what is written to a file of a cgroup.
type setting struct {
	controller, file, value string
	// optional: where there is no such file, there is no need for it.
	optional bool
}

// settingsV2 are those of cgroup2, in the order in which they are written; what is 0 has
// no limit. See Documentation/admin-guide/cgroup-v2.rst in Linux.
func settingsV2(l executor.Limits) []setting {
	swap, quota := "max", "max"
	if l.Memory > 0 {
		swap = "0" // there is no limit for both together
	}
	if l.Cores > 0 {
		quota = strconv.FormatInt(cpuQuota(l.Cores), 10)
	}
	return []setting{
		{"memory", "memory.swap.max", swap, true},
		{"memory", "memory.max", orWord(l.Memory, "max"), false},
		{"cpu", "cpu.max", quota + " " + strconv.Itoa(cpuPeriod), false},
		{"pids", "pids.max", orWord(l.Processes, "max"), false},
	}
}

// settingsV1 are those of cgroup v1. The limit of memory and swap together can never be
// below that of memory, so that it is lifted first. See admin-guide/cgroup-v1 in Linux.
func settingsV1(l executor.Limits) []setting {
	quota := int64(-1)
	if l.Cores > 0 {
		quota = cpuQuota(l.Cores)
	}
	return []setting{
		{"memory", "memory.memsw.limit_in_bytes", "-1", true},
		{"memory", "memory.limit_in_bytes", orWord(l.Memory, "-1"), false},
		{"memory", "memory.memsw.limit_in_bytes", orWord(l.Memory, "-1"), true},
		{"cpu", "cpu.cfs_period_us", strconv.Itoa(cpuPeriod), false},
		{"cpu", "cpu.cfs_quota_us", strconv.FormatInt(quota, 10), false},
		{"pids", "pids.max", orWord(l.Processes, "max"), false},
	}
}

// cpuQuota is the processor time in each period, in microseconds; Linux takes none below 1 ms.
func cpuQuota(cores float64) int64 { return max(int64(cores*cpuPeriod), 1000) }

func orWord(limit int64, none string) string {
	if limit <= 0 {
		return none
	}
	return strconv.FormatInt(limit, 10)
}
