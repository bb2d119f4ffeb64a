package cgroup

import (
	"strconv"

	"switchyard/activities/executor"
)

// Controllers are the controllers that limits need.
var Controllers = [...]string{"memory", "cpu", "pids"}

// cpuPeriod is the period of the processor quota, in microseconds.
const cpuPeriod = 100_000

// Setting is a value for a file of a cgroup.
type Setting struct {
	Controller, File, Value string
	// Optional settings are skipped if the file does not exist.
	Optional bool
}

// SettingsV2 returns the settings of cgroup2 in the order in which they must be written; a limit of 0
// means unlimited. See Documentation/admin-guide/cgroup-v2.rst in Linux.
func SettingsV2(l executor.Limits) []Setting {
	swap, quota := "max", "max"
	if l.Memory > 0 {
		swap = "0" // cgroup2 has no limit for memory and swap together
	}
	if l.Cores > 0 {
		quota = strconv.FormatInt(cpuQuota(l.Cores), 10)
	}
	return []Setting{
		{"memory", "memory.swap.max", swap, true},
		{"memory", "memory.max", orWord(l.Memory, "max"), false},
		{"cpu", "cpu.max", quota + " " + strconv.Itoa(cpuPeriod), false},
		{"pids", "pids.max", orWord(l.Processes, "max"), false},
	}
}

// SettingsV1 returns the settings of cgroup v1 in the order in which they must be written. The limit
// of memory and swap together can never be below that of memory, so it is lifted first. See
// admin-guide/cgroup-v1 in Linux.
func SettingsV1(l executor.Limits) []Setting {
	quota := int64(-1)
	if l.Cores > 0 {
		quota = cpuQuota(l.Cores)
	}
	return []Setting{
		{"memory", "memory.memsw.limit_in_bytes", "-1", true},
		{"memory", "memory.limit_in_bytes", orWord(l.Memory, "-1"), false},
		{"memory", "memory.memsw.limit_in_bytes", orWord(l.Memory, "-1"), true},
		{"cpu", "cpu.cfs_period_us", strconv.Itoa(cpuPeriod), false},
		{"cpu", "cpu.cfs_quota_us", strconv.FormatInt(quota, 10), false},
		{"pids", "pids.max", orWord(l.Processes, "max"), false},
	}
}

// cpuQuota returns the processor time in each period, in microseconds. Linux accepts no less than 1
// ms.
func cpuQuota(cores float64) int64 { return max(int64(cores*cpuPeriod), 1000) }

func orWord(limit int64, none string) string {
	if limit <= 0 {
		return none
	}
	return strconv.FormatInt(limit, 10)
}
