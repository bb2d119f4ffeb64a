package disk

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/docker/go-units"
)

// sizeForm matches a disk size.
var sizeForm = regexp.MustCompile(`^([0-9]+)([KMGT]?)$`)

// ParseSize returns the number of bytes in a size such as "50G". Units are powers of 1024; a bare number is in bytes.
func ParseSize(text string) (int64, error) {
	found := sizeForm.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%q is not a size; use a number with unit K, M, G or T, such as 50G", text)
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	unit := int64(1) << (10 * (strings.Index("KMGT", found[2]) + 1))
	if found[2] == "" {
		unit = 1
	}
	if err != nil || n > math.MaxInt64/unit || n*unit > maxVirtualSize {
		return 0, fmt.Errorf("a disk of %s is too large; the limit is %s", text, formatSize(maxVirtualSize))
	}
	if n == 0 {
		return 0, fmt.Errorf("%q is not a valid disk size; use a size such as 50G", text)
	}
	return n * unit, nil
}

// formatSize returns a size in readable form, such as 1.5 GiB.
func formatSize(bytes int64) string {
	return units.CustomSize("%.4g %s", float64(bytes), 1024, []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"})
}
