package doctor

import (
	"context"

	"switchyard/activities/executor/shell/cgroup"
)

func checkCgroups(context.Context) Finding { return judgeCgroups(cgroup.Inspect()) }
