package words

import (
	"fmt"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// GPUPart returns which part of a GPU an attempt holds, to follow the GPU, such as " (0.5 of it, 2000 MiB)". It returns "" for a
// whole one.
func GPUPart(p *v1.GpuPart) string {
	if p == nil {
		return ""
	}
	var held []string
	if p.GetThousandths() > 0 {
		held = append(held, fmt.Sprintf("%g of it", p.Share()))
	}
	if p.GetMemoryMb() > 0 {
		held = append(held, fmt.Sprintf("%d MiB", p.GetMemoryMb()))
	}
	return " (" + strings.Join(held, ", ") + ")"
}
