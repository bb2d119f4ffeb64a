package cgroup

import "testing"

func TestCgroupIsFoundInMountTables(t *testing.T) {
	const (
		hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
			"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n" +
			"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		spaced  = `30 23 0:26 / /sys/fs/c\040group rw shared:4 - cgroup2 cgroup2 rw` + "\n"
		part    = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		other   = "30 23 0:26 /docker/xyz /mnt rw - cgroup2 cgroup rw\n"
	)
	const old = "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	for name, test := range map[string]struct{ mounts, groups, controller, want string }{
		"memory of v1":     {hybrid + old, "4:memory:/x/y\n0::/\n", "memory", "/sys/fs/cgroup/memory/x/y"},
		"shared hierarchy": {old, "3:cpu,cpuacct:/z\n", "cpu", "/sys/fs/cgroup/cpu,cpuacct/z"},
		"not in v1":        {hybrid + old, "0::/\n", "memory", ""},
		"no such mount":    {hybrid, "4:memory:/\n0::/\n", "memory", ""},
		"only in v2":       {unified, "0::/\n", "cpu", ""},
	} {
		if got, err := Find(test.mounts, test.groups, test.controller); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, error %v, want %q", name, got, err, test.want)
		}
	}
	for name, test := range map[string]struct{ mounts, groups, want string }{
		"hybrid":            {hybrid, "5:devices:/x\n4:memory:/y\n0::/\n", "/sys/fs/cgroup/unified"},
		"unified":           {unified, "0::/user.slice/session-2.scope\n", "/sys/fs/cgroup/user.slice/session-2.scope"},
		"a space":           {spaced, "0::/a\n", "/sys/fs/c group/a"},
		"part of it":        {part, "0::/docker/abc/inner\n", "/sys/fs/cgroup/inner"},
		"not that part":     {other, "0::/docker/abc\n", ""},
		"the right of two":  {other + part, "0::/docker/abc\n", "/sys/fs/cgroup"},
		"old kernel":        {hybrid, "5:devices:/x\n", ""},
		"not mounted":       {"31 23 0:28 / / rw - ext4 /dev/sda rw\n", "0::/\n", ""},
		"malformed":         {"what\n", "0::/\n", ""},
		"outside namespace": {unified, "0::/../other\n", ""},
	} {
		got, err := Find(test.mounts, test.groups, "")
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, error %v, want %q", name, got, err, test.want)
		}
	}
}

func FuzzFindCgroup(f *testing.F) {
	f.Add(`30 23 0:26 /\040 /sys/fs/cgroup rw - cgroup2 cgroup2 rw`, "0::/ \n")
	f.Fuzz(func(t *testing.T, mounts, groups string) {
		_, _ = Find(mounts, groups, "")
		_, _ = Find(mounts, groups, "cpu")
	})
}
