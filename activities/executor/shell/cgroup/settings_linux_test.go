package cgroup

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/activities/executor"
)

func TestLimitsBecomeSettings(t *testing.T) {
	text := func(all []Setting) string {
		var b strings.Builder
		for _, s := range all {
			fmt.Fprintf(&b, "%s=%s ", s.File, s.Value)
		}
		return b.String()
	}
	none, all := executor.Limits{}, executor.Limits{Cores: 1.5, Memory: 1 << 20, Processes: 7}
	for _, test := range []struct{ got, want string }{
		{text(SettingsV2(none)), "memory.swap.max=max memory.max=max cpu.max=max 100000 pids.max=max "},
		{text(SettingsV2(all)), "memory.swap.max=0 memory.max=1048576 cpu.max=150000 100000 pids.max=7 "},
		{text(SettingsV1(none)), "memory.memsw.limit_in_bytes=-1 memory.limit_in_bytes=-1 memory.memsw.limit_in_bytes=-1 " +
			"cpu.cfs_period_us=100000 cpu.cfs_quota_us=-1 pids.max=max "},
		{text(SettingsV1(all)), "memory.memsw.limit_in_bytes=-1 memory.limit_in_bytes=1048576 memory.memsw.limit_in_bytes=1048576 " +
			"cpu.cfs_period_us=100000 cpu.cfs_quota_us=150000 pids.max=7 "},
	} {
		if test.got != test.want {
			t.Errorf("got  %s\nwant %s", test.got, test.want)
		}
	}
	if q := cpuQuota(0.001); q != 1000 {
		t.Errorf("quota %d, but Linux takes none below 1000", q)
	}
}
