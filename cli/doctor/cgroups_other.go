//go:build !linux

package doctor

import "context"

func checkCgroups(context.Context) Finding { return skipped("only Linux has cgroups") }
