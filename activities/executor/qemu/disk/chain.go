package disk

import (
	"context"
	"encoding/json"
	"fmt"
)

// chainSize returns the space that an overlay and its base use on the node, and the virtual size of the disk. The
// overlay must come from CreateOverlay, because qemu-img opens the base that it names.
func chainSize(ctx context.Context, overlay string) (used, virtual int64, err error) {
	out, err := run(ctx, shortCall, 0, "info", "-U", "-f", FormatQcow2, "--backing-chain", "--output=json", overlay)
	if err != nil {
		return 0, 0, err
	}
	var chain []struct {
		VirtualSize int64 `json:"virtual-size"`
		ActualSize  int64 `json:"actual-size"`
	}
	if err := json.Unmarshal(out, &chain); err != nil {
		return 0, 0, fmt.Errorf("read the output of %s: %w", program, err)
	}
	for i, image := range chain {
		if i == 0 {
			virtual = image.VirtualSize
		}
		used += image.ActualSize
	}
	return min(used, virtual), virtual, nil
}
